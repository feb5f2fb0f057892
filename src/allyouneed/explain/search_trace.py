"""What a search asked its model, noted down by standing between the two: its `Step` is wrapped."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import torch
from torch import Tensor

from ..config import DecodeConfig
from ..data.batch import pad
from ..decode import Hypothesis, build_rules, is_repetitive, length_divisor, make_step, search
from ..nn import DecoderState
from ..translator import Translator, without_loop

Prefix = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """One search. `asked` has, for each beginning the search went on with, the log-probabilities (V,) of what follows.

    A beginning leaves out the start sign; log-probabilities are in nats.
    """

    hypothesis: Hypothesis
    log_probabilities: Mapping[Prefix, Tensor]
    eos_id: int
    limit: int  # ids at most, the end sign included
    config: DecodeConfig

    def log_probability(self, beginning: Prefix) -> float:
        """The log-probability of a beginning that was asked about, or that continues one by a word."""
        return sum(float(self.log_probabilities[beginning[:t]][word]) for t, word in enumerate(beginning))

    def best(self, beginning: Prefix, count: int) -> list[tuple[int, float]]:
        """The likeliest next ids after a beginning, with their probabilities."""
        values, ids = self.log_probabilities[beginning].topk(min(count, len(self.log_probabilities[beginning])))
        return list(zip(ids.tolist(), values.exp().tolist(), strict=True))

    def ended(self) -> dict[Prefix, float]:
        """Sentences that could have been the answer: beginnings whose end is among the likeliest next words.

        With the score the search ranks by.
        """
        likely = {
            beginning: self.score((*beginning, self.eos_id))
            for beginning in self.log_probabilities
            if self.eos_id in [word for word, _ in self.best(beginning, self.config.beam)]
        }
        return dict(sorted(likely.items(), key=lambda item: -item[1]))

    def score(self, sentence: Prefix) -> float:
        """The log-probability over the length penalty."""
        total = self.log_probability(sentence)
        if self.config.beam == 1:
            return total
        finished = sentence[-1] == self.eos_id
        ids = list(sentence[:-1] if finished else sentence)
        return total / length_divisor(self.config, Hypothesis(ids, total, total, finished=finished))

    def why_it_ended(self) -> str:
        """In a sentence, why the search stopped where it did."""
        ids = tuple(self.hypothesis.ids)
        if ids not in self.log_probabilities:
            return f"The output reached its bound of {self.limit} tokens before the end sign came."
        chance = float(self.log_probabilities[ids][self.eos_id].exp())
        if self.config.beam == 1:
            return f"The end sign was the likeliest next token, with a probability of {100 * chance:.1f} %."
        others = [score for sentence, score in self.ended().items() if sentence != ids]
        score = f"{self.score((*ids, self.eos_id)):.3f}"
        rival = f"; the next best that ended has {others[0]:.3f}" if others else ""
        return (
            f"The end sign came with a probability of {100 * chance:.1f} %. Its score, the log-probability over the "
            f"length penalty, is {score}{rival}. The search stops when no sentence that goes on can still win; "
            f"once {self.config.beam} have ended, when none can by ending at the next token."
        )


@dataclass(frozen=True, slots=True)
class _Traced:
    """A state that knows which words led to each of its hypotheses. One sentence."""

    inner: DecoderState
    beginnings: tuple[Prefix, ...]

    def reorder(self, hypotheses: Tensor) -> "_Traced":
        return _Traced(self.inner.reorder(hypotheses), tuple(self.beginnings[n] for n in hypotheses.tolist()))

    def keep(self, sentences: Tensor) -> "_Traced":
        return replace(self, inner=self.inner.keep(sentences))


@torch.inference_mode()
def trace_search(translator: Translator, text: str) -> SearchTrace:
    """Translate one text as `translator` does, and note what the search asked.

    By beam or greedy search, its rules kept and decoded again where it goes round in circles; glossary, kept spans
    and chance are left out.
    """
    model, tokenizer, writer = translator.model, translator.source_tokenizer, translator.target_tokenizer
    config = replace(translator.decode, nbest=1, beam_groups=1, sample=False)
    never = (writer.pad_id, writer.sos_id, writer.unk_id)
    step = make_step(model, banned_ids=tuple(i for i in never if i is not None))
    asked: dict[Prefix, Tensor] = {}

    def noted(last: Tensor, state: _Traced) -> tuple[Tensor, _Traced]:
        log_probabilities, inner = step(last, state.inner)
        beginnings = tuple(
            (*before, word) if state.inner.length else ()
            for before, word in zip(state.beginnings, last.tolist(), strict=True)
        )
        for beginning, row in zip(beginnings, log_probabilities, strict=True):
            asked.setdefault(beginning, row.cpu())
        return log_probabilities, _Traced(inner, beginnings)

    ids = tokenizer.encode(translator.bundle.normalization(text))
    device = next(model.parameters()).device
    longest = int(config.length_ratio * (len(ids) - 2)) + config.extra_length
    limit = max(1, min(longest, config.max_length or longest, model.config.max_length))
    max_lengths = torch.tensor([limit], device=device)
    min_length = max(config.min_length, ceil(config.min_ratio * (len(ids) - 2)))

    def searched(config: DecodeConfig) -> Hypothesis:
        min_lengths = torch.tensor([min_length], device=device).minimum(max_lengths)
        ((found,),) = search(
            noted,
            _Traced(model.start(pad([ids], tokenizer.pad_id).to(device)), ((),)),
            config,
            sos_id=writer.sos_id,
            eos_id=writer.eos_id,
            max_lengths=max_lengths,
            rules=build_rules(config, eos_id=writer.eos_id, min_lengths=min_lengths),
        )
        return found

    found = searched(config)
    if config.retry_repetition and is_repetitive(found.ids, ids):
        found = searched(without_loop(config, found))
    return SearchTrace(found, asked, writer.eos_id, limit, config)
