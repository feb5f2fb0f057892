"""A record of a search: its `Step` is wrapped, and every prefix that it expands is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import torch
from torch import Tensor

from ..config import DecodeConfig
from ..data.batch import pad
from ..decode import Hypothesis, SearchLimits, build_rules, is_repetitive, length_divisor, make_step, search
from ..nn import DecoderState
from ..translator import Translator, without_repetition

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

    def log_probability(self, prefix: Prefix) -> float:
        """The log-probability of a prefix that was expanded, or that continues such a one by a token."""
        return sum(float(self.log_probabilities[prefix[:t]][token]) for t, token in enumerate(prefix))

    def best(self, prefix: Prefix, count: int) -> list[tuple[int, float]]:
        """The most probable next ids after a prefix, with their probabilities."""
        values, ids = self.log_probabilities[prefix].topk(min(count, len(self.log_probabilities[prefix])))
        return list(zip(ids.tolist(), values.exp().tolist(), strict=True))

    def ended(self) -> dict[Prefix, float]:
        """The finished hypotheses with their scores, best first: prefixes with `<eos>` among the best next tokens."""
        likely = {
            prefix: self.score((*prefix, self.eos_id))
            for prefix in self.log_probabilities
            if self.eos_id in [token for token, _ in self.best(prefix, self.config.beam)]
        }
        return dict(sorted(likely.items(), key=lambda item: -item[1]))

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
        if ids not in self.log_probabilities:
            return f"The output reached its limit of {self.limit} tokens before <eos>."
        probability = float(self.log_probabilities[ids][self.eos_id].exp())
        if self.config.beam == 1:
            return f"<eos> was the most probable next token ({100 * probability:.1f} %)."
        others = [score for sentence, score in self.ended().items() if sentence != ids]
        score = f"{self.score((*ids, self.eos_id)):.3f}"
        rival = f"; the next best finished hypothesis has {others[0]:.3f}" if others else ""
        return (
            f"<eos> had a probability of {100 * probability:.1f} %. The score of the translation, its log-probability "
            f"divided by the length penalty, is {score}{rival}. The search stops when no unfinished hypothesis can "
            f"still get a better score, or, once {self.config.beam} hypotheses have finished, when none "
            "can at the next token."
        )


@dataclass(frozen=True, slots=True)
class _Traced:
    """A state that knows the tokens of each of its hypotheses. One sentence."""

    inner: DecoderState
    prefixes: tuple[Prefix, ...]

    def reorder(self, hypotheses: Tensor) -> "_Traced":
        return _Traced(self.inner.reorder(hypotheses), tuple(self.prefixes[n] for n in hypotheses.tolist()))

    def keep(self, sentences: Tensor) -> "_Traced":
        return replace(self, inner=self.inner.keep(sentences))


@torch.inference_mode()
def trace_search(translator: Translator, text: str) -> SearchTrace:
    """Translate one text by beam or greedy search, and record the search.

    Search rules and the retry after a repetition are those of `translator`. Glossary, copied spans, sampling and
    int8 are left out.
    """
    model, tokenizer, target_tokenizer = translator.model, translator.source_tokenizer, translator.target_tokenizer
    config = replace(translator.decode, nbest=1, beam_groups=1, sample=False)
    banned_ids = (target_tokenizer.pad_id, target_tokenizer.sos_id, target_tokenizer.unk_id)
    step = make_step(model, banned_ids=tuple(i for i in banned_ids if i is not None))
    by_prefix: dict[Prefix, Tensor] = {}

    def traced_step(last: Tensor, state: _Traced) -> tuple[Tensor, _Traced]:
        log_probabilities, inner = step(last, state.inner)
        prefixes = tuple(
            (*prefix, token) if state.inner.length else ()
            for prefix, token in zip(state.prefixes, last.tolist(), strict=True)
        )
        for prefix, row in zip(prefixes, log_probabilities, strict=True):
            by_prefix.setdefault(prefix, row.cpu())
        return log_probabilities, _Traced(inner, prefixes)

    ids = tokenizer.encode(translator.bundle.normalization(text))
    device = next(model.parameters()).device
    longest = int(config.length_ratio * (len(ids) - 2)) + config.extra_length
    limit = max(1, min(longest, config.max_length or longest, model.config.max_length))
    max_lengths = torch.tensor([limit], device=device)
    min_length = max(config.min_length, ceil(config.min_ratio * (len(ids) - 2)))

    def run_search(config: DecodeConfig) -> Hypothesis:
        min_lengths = torch.tensor([min_length], device=device).minimum(max_lengths)
        ((hypothesis,),) = search(
            traced_step,
            _Traced(model.start(pad([ids], tokenizer.pad_id).to(device)), ((),)),
            config,
            SearchLimits(sos_id=target_tokenizer.sos_id, eos_id=target_tokenizer.eos_id, max_lengths=max_lengths),
            rules=build_rules(config, eos_id=target_tokenizer.eos_id, min_lengths=min_lengths),
        )
        return hypothesis

    hypothesis = run_search(config)
    if config.retry_repetition and is_repetitive(hypothesis.ids, ids):
        hypothesis = run_search(without_repetition(config, hypothesis))
    return SearchTrace(hypothesis, by_prefix, target_tokenizer.eos_id, limit, config)
