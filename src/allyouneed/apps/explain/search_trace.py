"""Record a search: wrap its engine, and keep every prefix that the search expands."""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...config import DecodeConfig
from ...decode import Continuation, Hypothesis, WrappedStep, length_divisor, sampling_probabilities
from ...translator import Segment, Translator
from ...translator.engine import Engine, EngineStep
from ...translator.generation import GenerationRequest, TranslationGenerator
from ...translator.segment_translator import search_for_spans

Prefix = tuple[int, ...]


def as_tensor(rows: Any) -> Tensor:
    """Copy the log-probabilities of an engine's step, a tensor or a buffer, to a tensor on the CPU."""
    return rows.float().cpu().clone() if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """A recorded search. A prefix is the tokens of a hypothesis so far, without `<sos>`.

    `log_probabilities` maps each expanded prefix to the model's log-probabilities of the next token, (V,), in nats.
    `after_rules` has these log-probabilities after the rules of the search.
    """

    hypothesis: Hypothesis
    log_probabilities: Mapping[Prefix, Tensor]
    eos_id: int
    limit: int  # most tokens, counting `<eos>`
    config: DecodeConfig
    constrained: bool = False  # the translation must contain phrases from a glossary, or copied spans
    after_rules: Mapping[Prefix, Tensor] = field(default_factory=dict)

    def log_probability(self, prefix: Prefix) -> float:
        """Return the log-probability of a prefix that was expanded, or that extends an expanded prefix by one token."""
        return sum(float(self.log_probabilities[prefix[:t]][token]) for t, token in enumerate(prefix))

    def best(self, prefix: Prefix, count: int) -> list[tuple[int, float]]:
        """Return the most probable next ids after a prefix, with their probabilities."""
        values, ids = self.log_probabilities[prefix].topk(min(count, len(self.log_probabilities[prefix])))
        return list(zip(ids.tolist(), values.exp().tolist(), strict=True))

    def ruled(self, prefix: Prefix) -> Tensor:
        """Return the log-probabilities of the next token after a prefix, (V,), with the rules of the search applied."""
        row = self.after_rules.get(prefix, self.log_probabilities[prefix])
        if not self._is_forced(prefix):
            return row
        only_end = torch.full_like(row, -torch.inf)
        only_end[self.eos_id] = 0.0
        return only_end

    def ranked(self) -> list[Prefix]:
        """Order the expanded prefixes: those of the translation, then the others by mean log-probability per token."""
        answer = tuple(self.hypothesis.ids)

        def order(prefix: Prefix) -> tuple[bool, float]:
            return answer[: len(prefix)] != prefix, -self.log_probability(prefix) / (len(prefix) or 1)

        return sorted(self.log_probabilities, key=order)

    def ended(self) -> dict[Prefix, float]:
        """Return the finished hypotheses with their scores, best first.

        A prefix is a finished hypothesis if it may end and its `<eos>` is among the `beam` best continuations of all
        prefixes of its length. In a search with constraints not all hypotheses compete, so the `<eos>` only has to be
        among the best continuations of the prefix itself.
        """
        totals = {prefix: self.ruled(prefix) + self.log_probability(prefix) for prefix in self.log_probabilities}
        rivals: dict[int, list[Tensor]] = {}
        for prefix, row in totals.items():
            rivals.setdefault(len(prefix), []).append(row)

        def ends(prefix: Prefix) -> bool:
            row = totals[prefix]
            every = row if self.constrained else torch.cat(rivals[len(prefix)])
            end = row[self.eos_id]
            return bool(end.isfinite() and end >= every.topk(min(self.config.beam, len(every))).values[-1])

        ended = {prefix: self.score((*prefix, self.eos_id)) for prefix in totals if ends(prefix)}
        return dict(sorted(ended.items(), key=lambda item: -item[1]))

    def score(self, sentence: Prefix) -> float:
        """Divide the log-probability of a sentence by its length penalty. A forced `<eos>` has a probability of 1."""
        finished = sentence[-1] == self.eos_id
        is_certain = finished and self._is_forced(sentence[:-1]) and not self._is_scored_again()
        total = self.log_probability(sentence[:-1] if is_certain else sentence)
        if self.config.beam == 1:
            return total
        ids = list(sentence[:-1] if finished else sentence)
        return total / length_divisor(self.config, Hypothesis(ids, total, total, finished=finished))

    def explain_ending(self) -> str:
        """Explain in a sentence or two why the search stopped."""
        ids, limit = tuple(self.hypothesis.ids), "1 token" if self.limit == 1 else f"{self.limit} tokens"
        if not self.hypothesis.finished or ids not in self.log_probabilities:
            return f"The output reached its limit of {limit} before <eos>."
        row = self.log_probabilities[ids]
        probability = percent(float(row[self.eos_id].exp()))
        if self._is_forced(ids):
            return (
                f"The output reached its limit of {limit}, where forced_eos ends it; the model gave <eos> "
                f"a probability of {probability}."
            )
        if self.config.sample and not self.constrained:
            return self._explain_draw(ids)
        if self.config.beam == 1 and not self.constrained:
            allowed = "" if int(row.argmax()) == self.eos_id else " that the rules of the search allow"
            return f"<eos> was the most probable next token{allowed} ({probability})."
        others = [score for sentence, score in self.ended().items() if sentence != ids]
        score = f"{self.score((*ids, self.eos_id)):.3f}"
        rival = f"; the next best finished hypothesis has {others[0]:.3f}" if others and not self.constrained else ""
        ending = (
            f"<eos> had a probability of {probability}. The score of the translation, its log-probability "
            f"divided by the length penalty, is {score}{rival}."
        )
        if self.constrained:
            return f"{ending} A hypothesis without the words that the translation must contain could not end."
        return f"{ending} {self._explain_stopping()}"

    def _explain_draw(self, ids: Prefix) -> str:
        config, row = self.config, self.ruled(ids).tolist()
        drawn = sampling_probabilities(row, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p)
        plain = {"temperature": 1, "top_k": 0, "top_p": 1}
        changed = [
            f"{name}={getattr(config, name):g}" for name, value in plain.items() if getattr(config, name) != value
        ]
        setting = f" with {' and '.join(changed)}" if changed else ""
        return f"<eos> was drawn; its probability{setting} was {percent(float(drawn[self.eos_id]))}."

    def _explain_stopping(self) -> str:
        """State the rule by which a beam search stops (decode/beam_options.py)."""
        beam, nbest = self.config.beam, self.config.nbest
        if self.config.early_stopping == "beam":
            return (
                f"The search stops when {beam} hypotheses have finished and none of the {beam} best has a worse score "
                "than the best unfinished one at its present length."
            )
        better = "still get a better score" if nbest == 1 else f"get among the {nbest} best finished ones"
        return (
            f"The search stops when no unfinished hypothesis can {better}, or, once "
            f"{ceil(beam * self.config.patience)} hypotheses have finished, when none can at the next token."
        )

    def _is_forced(self, prefix: Prefix) -> bool:
        """Return True if only `<eos>` may follow a prefix, because it reaches the limit."""
        return self.config.forced_eos and len(prefix) + 1 == self.limit

    def _is_scored_again(self) -> bool:
        """Return True if the scores are the model's own, without the rules (`TranslationGenerator`)."""
        return self.config.repetition_penalty != 1


def percent(share: float) -> str:
    """Write a share from 0 to 1 as a percentage, as web/dom.js does; only 0 itself becomes 0 %."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def with_parents(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """Return these prefixes and all their beginnings, the shortest first."""
    whole = {prefix[:length] for prefix in prefixes for length in range(len(prefix) + 1)}
    return sorted(whole, key=lambda prefix: (len(prefix), prefix))


class RecordedStep(WrappedStep):
    """A step that keeps the log-probabilities after every prefix that a search expands, for one sentence."""

    _step: EngineStep

    def __init__(self, step: EngineStep) -> None:
        super().__init__(step, 1)
        self._prefixes: list[Prefix] | None = None  # None until something was read, at least `<sos>`
        self.log_probabilities_of: dict[Prefix, Tensor] = {}
        self.after_rules: dict[Prefix, Tensor] = {}

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Advance the inner step, and keep the log-probabilities of the new prefixes; see `Step.__call__`."""
        super().__call__(hypotheses, tokens)
        before = self._prefixes
        self._prefixes = [
            () if before is None else (*before[parent], token) for parent, token in zip(hypotheses, tokens, strict=True)
        ]
        self.log_probabilities_of |= self._rows()

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        self.after_rules |= self._rows()
        return super().best(totals, count)

    def log_probabilities(self) -> Any:
        """Return the log-probabilities of the next token; see `EngineStep`."""
        return self._step.log_probabilities()

    def _rows(self) -> dict[Prefix, Tensor]:
        return dict(zip(self._prefixes or (), as_tensor(self.log_probabilities()), strict=True))


class RecordingEngine:
    """An engine whose searches, of one sentence each, are recorded."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.config, self.precision = engine, engine.config, engine.precision
        self.workers = engine.workers
        self.steps: list[RecordedStep] = []

    def start(self, sources: Sequence[Sequence[int]], **settings: Any) -> RecordedStep:
        """Start a recorded search; see `Engine.start`."""
        self.steps.append(RecordedStep(self._engine.start(sources, **settings)))
        return self.steps[-1]


class _RecordedGenerator(TranslationGenerator):
    """A generator that records, for each hypothesis, the settings of its search and the results of its rules."""

    def __init__(self, engine: RecordingEngine, *arguments: Any, **named: Any) -> None:
        super().__init__(engine, *arguments, **named)
        self.recording = engine
        self.searches: list[tuple[Hypothesis, DecodeConfig, Mapping[Prefix, Tensor]]] = []

    def _search(self, requests: Sequence[GenerationRequest], config: DecodeConfig) -> list[list[Hypothesis]]:
        begun = len(self.recording.steps)
        results = super()._search(requests, config)
        after_rules = ChainMap(*(step.after_rules for step in self.recording.steps[begun:]))
        self.searches += [(one, config, after_rules) for hypotheses in results for one in hypotheses]
        return results


def trace_search(translator: Translator, segment: Segment) -> SearchTrace:
    """Search for the translation of a segment as `translator` does, with all its settings, and record the search.

    If the translation is searched again (because it was repetitive, or its copied spans were wrong), all searches are
    recorded; the settings and rules are those of the search that found the translation. Call this only with a `segment`
    that has a translation.
    """
    engine = RecordingEngine(translator.engine)
    generator = _RecordedGenerator(
        engine,
        translator.target_tokenizer,
        translator.decode,
        source_specials=len(translator.source_tokenizer.frame([])),
        normal_repetition=translator.bundle.longest_repetition,
    )
    request = segment.request
    (hypotheses,), _ = generator.generate([request])
    if hypotheses and segment.constraints:
        hypotheses = search_for_spans(
            generator, segment.constraints, segment.text, request, hypotheses, prefix=request.prefix
        )
    config, after_rules = next(
        (config, after_rules) for one, config, after_rules in reversed(generator.searches) if one == hypotheses[0]
    )
    return SearchTrace(
        hypotheses[0],
        ChainMap(*(step.log_probabilities_of for step in engine.steps)),
        translator.target_tokenizer.eos_id,
        max(generator.limits([request]).max_lengths),
        config,
        constrained=bool(request.constraints),
        after_rules=after_rules,
    )
