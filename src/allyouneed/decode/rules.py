"""Rules about the next token, for any search.

A rule changes the log-probabilities of the next token, depending on the tokens of the hypothesis so far. `with_rules`
wraps a `Step` so that it applies them: searches need no code for rules, and one without rules loses no time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from ..lazy import Tensor, torch
from .beam import find_top_continuations
from .constraint_state import Spelling
from .step import AnyState, Step

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The tokens so far, the sentences and log-probabilities (N, V) → the changed log-probabilities.

The tokens of the N hypotheses are (N, L), without the start token; `sentences` (N,) are the sentences they belong to,
counted from 0 in the batch that the search began with.
"""


@dataclass(frozen=True, slots=True)
class TrackedState(Generic[AnyState]):
    """A state that also holds the tokens so far, which rules need."""

    inner: AnyState
    tokens: Tensor  # (N, L)
    sentences: Tensor  # (N,)
    count: int  # sentences in the batch

    def reorder(self, hypotheses: Tensor) -> "TrackedState[AnyState]":
        """As in `State`."""
        return replace(
            self,
            inner=self.inner.reorder(hypotheses),
            tokens=self.tokens[hypotheses],
            sentences=self.sentences[hypotheses],
        )

    def keep(self, sentences: Tensor) -> "TrackedState[AnyState]":
        """As in `State`."""
        rows = torch.arange(len(self.tokens), device=sentences.device).view(self.count, -1)[sentences].flatten()
        return TrackedState(self.inner.keep(sentences), self.tokens[rows], self.sentences[rows], len(sentences))


class RuledStep(Generic[AnyState]):
    """A `Step` whose log-probabilities are changed by rules, one after the other."""

    def __init__(self, step: Step[AnyState], rules: Sequence[Rule]) -> None:
        self._step, self._rules = step, rules
        self.top_continuations = find_top_continuations(step)

    def __call__(self, last: Tensor, state: TrackedState[AnyState]) -> tuple[Tensor, TrackedState[AnyState]]:
        log_probabilities, inner = self._step(last, state.inner)
        tokens = torch.cat((state.tokens, last[:, None]), 1)
        ruled = apply_rules(self._rules, tokens[:, 1:], state.sentences, log_probabilities)
        return ruled, replace(state, inner=inner, tokens=tokens)


def apply_rules(rules: Sequence[Rule], written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
    """What the rules, in their order, make of log-probabilities; shapes as in `Rule`.

    A rule that would ban every token is ignored for that hypothesis.
    """
    for rule in rules:
        changed = rule(written, sentences, log_probabilities)
        if changed is log_probabilities:
            continue
        nothing_left = changed.isneginf().all(-1, keepdim=True)
        log_probabilities = torch.where(nothing_left, log_probabilities, changed)
    return log_probabilities


def with_rules(
    step: Step[AnyState], state: AnyState, rules: Sequence[Rule], *, of: Tensor
) -> tuple[Step[TrackedState[AnyState]], TrackedState[AnyState]]:
    """A step and a state that apply the rules, in their order, to as many sentences as `of` is long.

    A rule that would ban every token is ignored for that hypothesis at that step.
    """
    nothing = torch.empty(len(of), 0, dtype=torch.int64, device=of.device)
    return RuledStep(step, rules), TrackedState(state, nothing, torch.arange(len(of), device=of.device), len(of))


def minimum_length(min_lengths: Tensor, *, eos_id: int) -> Rule:
    """Sentence b has at least `min_lengths[b]` tokens, the end token included. Shapes: min_lengths (B,)."""

    def rule(written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
        too_short = min_lengths[sentences] > written.size(1) + 1
        is_end = torch.arange(log_probabilities.size(-1), device=written.device) == eos_id
        return log_probabilities.masked_fill(too_short[:, None] & is_end, -torch.inf)

    return rule


def forced_end(max_lengths: Tensor, *, eos_id: int) -> Rule:
    """Sentence b ends by the end token, with probability 1, if it gets `max_lengths[b]` tokens. Shapes: (B,)."""
    lengths = set(max_lengths.tolist())

    def rule(written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
        if written.size(1) + 1 not in lengths:
            return log_probabilities
        last = max_lengths[sentences] == written.size(1) + 1
        ended = torch.full_like(log_probabilities, -torch.inf)
        ended[:, eos_id] = 0.0
        return torch.where(last[:, None], ended, log_probabilities)

    return rule


def no_repeated_ngram(n: int) -> Rule:
    """No n-gram of tokens occurs twice in a sentence (Paulus et al., 2018)."""

    def rule(written: Tensor, _: Tensor, log_probabilities: Tensor) -> Tensor:
        if written.size(1) < n:
            return log_probabilities
        ngrams = written.unfold(1, n, 1)  # (N, L) → (N, L - n + 1, n)
        latest = written[:, written.size(1) - n + 1 :]  # the first n - 1 tokens of the n-gram that comes next
        again = (ngrams[:, :, :-1] == latest[:, None]).all(-1)
        hypothesis, ngram = again.nonzero(as_tuple=True)
        blocked = torch.zeros_like(log_probabilities, dtype=torch.bool)
        blocked[hypothesis, ngrams[hypothesis, ngram, -1]] = True
        return log_probabilities.masked_fill(blocked, -torch.inf)

    return rule


def repetition_penalty(penalty: float) -> Rule:
    """Multiply the log-probabilities of tokens that occurred before by `penalty` (above 1: less likely).

    Keskar et al. (2019) scale logits, which may be positive or negative; log-probabilities are never positive.
    """

    def rule(written: Tensor, _: Tensor, log_probabilities: Tensor) -> Tensor:
        return log_probabilities.scatter(1, written, log_probabilities.gather(1, written) * penalty)

    return rule


def forced_prefix(prefixes: Sequence[Sequence[int]]) -> Rule:
    """Sentence b begins with `prefixes[b]`."""
    longest = max(map(len, prefixes))

    def rule(written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
        position = written.size(1)
        if position >= longest:
            return log_probabilities
        forced = log_probabilities.clone()
        for row, sentence in enumerate(sentences.tolist()):
            if position < len(prefixes[sentence]):
                forced[row] = -torch.inf
                forced[row, prefixes[sentence][position]] = log_probabilities[row, prefixes[sentence][position]]
        return forced

    return rule


Limit = tuple[Mapping[int, int], int]
"""Tokens with a weight each, and the highest sum that the weights of a sentence may have."""


def at_most(limits: Sequence[Sequence[Limit]]) -> Rule:
    """Sentence b keeps every limit of `limits[b]`: a token that would exceed one is banned."""

    def rule(written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
        blocked = torch.zeros_like(log_probabilities, dtype=torch.bool)
        for row, sentence in enumerate(sentences.tolist()):
            for weights, highest in limits[sentence]:
                left = highest - sum(weights.get(i, 0) for i in written[row].tolist())
                blocked[row, [i for i, weight in weights.items() if weight > left]] = True
        return log_probabilities.masked_fill(blocked, -torch.inf)

    return rule


Order = Sequence[Sequence[Spelling]]
"""Phrases, each in several spellings, that may occur only one after the other."""


def in_order(orders: Sequence[Sequence[Order]]) -> Rule:
    """Sentence b completes no phrase of an order before those that come earlier there."""

    def rule(written: Tensor, sentences: Tensor, log_probabilities: Tensor) -> Tensor:
        blocked = torch.zeros_like(log_probabilities, dtype=torch.bool)
        for row, (sentence, ids) in enumerate(zip(sentences.tolist(), written.tolist(), strict=True)):
            for order in orders[sentence]:
                following = order[_seen_tokens(order, ids) :]
                early = {spelling[-1] for phrase in following[1:] for spelling in phrase if _is_next(spelling, ids)}
                due = {spelling[-1] for phrase in following[:1] for spelling in phrase if _is_next(spelling, ids)}
                blocked[row, list(early - due)] = True
        return log_probabilities.masked_fill(blocked, -torch.inf)

    return rule


def _seen_tokens(order: Order, ids: list[int]) -> int:
    """How many phrases of an order, from its first on, occur in `ids` one after the other."""
    count = 0
    for end in range(1, len(ids) + 1):
        if count < len(order) and any(tuple(ids[:end][-len(spelling) :]) == spelling for spelling in order[count]):
            count += 1
    return count


def _is_next(spelling: Spelling, ids: list[int]) -> bool:
    """Whether one more token can complete this spelling."""
    return len(spelling) == 1 or tuple(ids[1 - len(spelling) :]) == spelling[:-1]
