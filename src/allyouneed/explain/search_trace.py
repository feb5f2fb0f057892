"""A record of a search: its engine is wrapped, and every prefix that the search expands is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from ..config import DecodeConfig
from ..decode import Hypothesis, length_divisor
from ..errors import InputError
from ..inference import AnyEngine, make_engine
from ..translator import Segment, Translator
from ..translator.generation import TranslationGenerator
from ..translator.span_search import search_for_spans

Prefix = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """One search. `log_probabilities` maps each expanded prefix to those of the next token, (V,), in nats.

    A prefix leaves out `<sos>`.
    """

    hypothesis: Hypothesis
    log_probabilities: Mapping[Prefix, Tensor]
    eos_id: int
    limit: int  # tokens at most, `<eos>` included
    config: DecodeConfig
    constrained: bool = False  # the translation must have phrases: of a glossary, or copied spans

    def log_probability(self, prefix: Prefix) -> float:
        """The log-probability of a prefix that was expanded, or that continues such a one by a token."""
        return sum(float(self.log_probabilities[prefix[:t]][token]) for t, token in enumerate(prefix))

    def best(self, prefix: Prefix, count: int) -> list[tuple[int, float]]:
        """The most probable next ids after a prefix, with their probabilities."""
        values, ids = self.log_probabilities[prefix].topk(min(count, len(self.log_probabilities[prefix])))
        return list(zip(ids.tolist(), values.exp().tolist(), strict=True))

    def ended(self) -> dict[Prefix, float]:
        """The finished hypotheses with their scores, best first.

        These are the prefixes whose `<eos>` is among the `beam` best continuations of all prefixes of their length. Of
        a search with constraints or groups, whose hypotheses do not all compete, among those of the prefix itself.
        """
        totals = {prefix: row + self.log_probability(prefix) for prefix, row in self.log_probabilities.items()}
        rivals: dict[int, list[Tensor]] = {}
        for prefix, row in totals.items():
            rivals.setdefault(len(prefix), []).append(row)
        all_compete = not self.constrained and self.config.beam_groups == 1

        def ends(prefix: Prefix) -> bool:
            row = totals[prefix]
            every = torch.cat(rivals[len(prefix)]) if all_compete else row
            return bool(row[self.eos_id] >= every.topk(min(self.config.beam, len(every))).values[-1])

        ended = {prefix: self.score((*prefix, self.eos_id)) for prefix in totals if ends(prefix)}
        return dict(sorted(ended.items(), key=lambda item: -item[1]))

    def score(self, sentence: Prefix) -> float:
        """The log-probability divided by the length penalty."""
        total = self.log_probability(sentence)
        if self.config.beam == 1:
            return total
        finished = sentence[-1] == self.eos_id
        ids = list(sentence[:-1] if finished else sentence)
        return total / length_divisor(self.config, Hypothesis(ids, total, total, finished=finished))

    def explain_ending(self) -> str:
        """Why the search stopped, in a sentence or two."""
        ids = tuple(self.hypothesis.ids)
        if not self.hypothesis.finished or ids not in self.log_probabilities:
            return f"The output reached its limit of {self.limit} tokens before <eos>."
        probability = f"{100 * float(self.log_probabilities[ids][self.eos_id].exp()):.1f} %"
        if self.config.sample and not self.constrained:
            return f"<eos> was drawn; its probability was {probability}."
        if self.config.beam == 1 and not self.constrained:
            return f"<eos> was the most probable next token ({probability})."
        others = [score for sentence, score in self.ended().items() if sentence != ids]
        score = f"{self.score((*ids, self.eos_id)):.3f}"
        rival = f"; the next best finished hypothesis has {others[0]:.3f}" if others and not self.constrained else ""
        ending = (
            f"<eos> had a probability of {probability}. The score of the translation, its log-probability "
            f"divided by the length penalty, is {score}{rival}. "
        )
        if self.constrained:
            return ending + "A hypothesis without the words that the translation must contain could not end."
        return (
            f"{ending}The search stops when no unfinished hypothesis can still get a better score, or, once "
            f"{self.config.beam} hypotheses have finished, when none can at the next token."
        )


@dataclass(frozen=True, slots=True)
class _Traced:
    """A state that knows the tokens of each of its hypotheses. One sentence."""

    inner: Any
    prefixes: tuple[Prefix | None, ...]  # None: nothing was read yet, not even `<sos>`

    def reorder(self, hypotheses: Tensor) -> "_Traced":
        return _Traced(self.inner.reorder(hypotheses), tuple(self.prefixes[n] for n in hypotheses.tolist()))

    def keep(self, sentences: Tensor) -> "_Traced":
        return replace(self, inner=self.inner.keep(sentences))


class RecordingEngine:
    """An engine that keeps the log-probabilities after every prefix that a search expands. For one sentence."""

    can_be_joined = False

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self.config, self.precision, self.compiled = engine.config, engine.precision, engine.compiled
        self.top_continuations = engine.top_continuations
        self.by_prefix: dict[Prefix, Tensor] = {}

    def begin_search(self) -> Self:
        """As in `Engine`."""
        return self

    def start(self, source: Tensor) -> _Traced:
        """As in `Engine`."""
        return _Traced(self._engine.start(source), (None,) * len(source))

    def step(self, last: Tensor, state: _Traced) -> tuple[Tensor, _Traced]:
        """As in `Engine`."""
        logits, inner = self._engine.step(last, state.inner)
        return logits, _Traced(inner, _extend(state.prefixes, last))

    def log_probabilities(self, last: Tensor, state: _Traced, banned_ids: Tensor) -> tuple[Tensor, _Traced]:
        """As in `Engine`."""
        rows, inner = self._engine.log_probabilities(last, state.inner, banned_ids)
        prefixes = _extend(state.prefixes, last)
        for prefix, row in zip(prefixes, rows, strict=True):
            self.by_prefix.setdefault(prefix, row.cpu())
        return rows, _Traced(inner, prefixes)


def _extend(prefixes: tuple[Prefix | None, ...], last: Tensor) -> tuple[Prefix, ...]:
    return tuple(
        () if prefix is None else (*prefix, token) for prefix, token in zip(prefixes, last.tolist(), strict=True)
    )


def trace_search(translator: Translator, segment: Segment) -> SearchTrace:
    """Search for the translation of a segment as `translator` does, with all its settings, and record the search.

    Where the translation is searched again (because it was repetitive, or its copied spans were wrong), every search
    is recorded. Refuses a segment whose glossary and copied spans do not fit within the longest translation.
    """
    engine = RecordingEngine(make_engine(translator.model, precision=translator.precision))
    generator = TranslationGenerator(
        [translator.model],
        engine,
        translator.target_tokenizer,
        translator.decode,
        source_specials=len(translator.source_tokenizer.frame([])),
    )
    request = segment.request
    (hypotheses,), _ = generator.generate([request])
    if hypotheses and segment.constraints:
        hypotheses = search_for_spans(
            generator, segment.constraints, segment.text, request, hypotheses, prefix=request.prefix
        )
    if not hypotheses:
        raise InputError(
            f"no translation of {segment.text!r} has its glossary terms and copied spans "
            f"within {generator.limit} tokens"
        )
    limit = int(generator.limits([request]).longest)
    return SearchTrace(
        hypotheses[0], engine.by_prefix, translator.target_tokenizer.eos_id, limit, translator.decode,
        constrained=bool(request.constraints),
    )  # fmt: skip
