"""Rules about the next token, for any search.

A rule reads the tokens of a hypothesis and says which may come next. `RuledStep` applies rules to a `Step`: searches
need no code for rules, and a search without rules loses no time. `EndedStep` does the same for models that must end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from .step import Continuation, Restriction, Step, WrappedStep

Rule = Callable[[int, Sequence[int]], Restriction | None]
"""A sentence, counted from 0, and the tokens of a hypothesis without the start token → what may come next."""


class RuledStep(WrappedStep):
    """A `Step` that follows rules, one after the other.

    A rule that would leave no token is ignored for that hypothesis at that step.
    """

    def __init__(self, step: Step, rules: Sequence[Rule], sentences: int) -> None:
        super().__init__(step, sentences)
        self._rules = rules
        self._written: list[list[int]] = [[] for _ in self._sentences]  # with the start token

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """As in `Step`."""
        super().__call__(hypotheses, tokens)
        self._written = [[*self._written[n], token] for n, token in zip(hypotheses, tokens, strict=True)]
        for rule in self._rules:
            for n, (sentence, written) in enumerate(zip(self._sentences, self._written, strict=True)):
                restriction = rule(sentence, written[1:])
                if restriction:
                    self.restrict(n, restriction)


class EndedStep(WrappedStep):
    """A `Step` that ends a sentence of `max_lengths[b]` tokens with the end token, at no cost."""

    def __init__(self, step: Step, max_lengths: Sequence[int], *, eos_id: int) -> None:
        super().__init__(step, len(max_lengths))
        self._max_lengths = max_lengths
        self._eos_id = eos_id
        self._length = 0

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """As in `Step`."""
        super().__call__(hypotheses, tokens)
        self._length += 1

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """As in `Step`."""
        found = super().best(totals, count)
        for i, (sentence, group) in enumerate(groupby(range(len(totals)), key=self._sentences.__getitem__)):
            if self._length == self._max_lengths[sentence]:
                possible = [n for n in group if totals[n] > -math.inf]
                best_first = sorted(possible, key=lambda n: -totals[n])
                found[i] = [Continuation(totals[n], n, self._eos_id) for n in best_first[:count]]
        return found

    def log_probability(self, hypothesis: int, token: int) -> float:
        """As in `Step`."""
        if self._length < self._max_lengths[self._sentences[hypothesis]]:
            return super().log_probability(hypothesis, token)
        return 0.0 if token == self._eos_id else -math.inf


def minimum_length(min_lengths: Sequence[int], *, eos_id: int) -> Rule:
    """Let sentence b have at least `min_lengths[b]` tokens, the end token included."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        return Restriction(banned=[eos_id]) if len(written) + 1 < min_lengths[sentence] else None

    return rule


def no_repeated_ngram(n: int) -> Rule:
    """Let no n-gram of tokens occur twice in a sentence (Paulus et al., 2018)."""

    def rule(_: int, written: Sequence[int]) -> Restriction | None:
        latest = list(written[len(written) - n + 1 :])  # the first n - 1 tokens of the n-gram that comes next
        starts = range(len(written) - n + 1)
        banned = {written[i + n - 1] for i in starts if list(written[i : i + n - 1]) == latest}
        return Restriction(banned=banned) if banned else None

    return rule


def repetition_penalty(penalty: float) -> Rule:
    """Multiply the log-probabilities of tokens that occurred before by `penalty` (above 1: less likely).

    Keskar et al. (2019) scale logits, which may be positive or negative; log-probabilities are never positive.
    """

    def rule(_: int, written: Sequence[int]) -> Restriction | None:
        return Restriction(penalized=set(written), penalty=penalty) if written else None

    return rule


def forced_prefix(prefixes: Sequence[Sequence[int]]) -> Rule:
    """Let sentence b begin with `prefixes[b]`."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        prefix = prefixes[sentence]
        return Restriction(forced=prefix[len(written)]) if len(written) < len(prefix) else None

    return rule


Limit = tuple[Mapping[int, int], int]
"""Tokens with a weight each, and the highest sum that the weights of a sentence may have."""


def at_most(limits: Sequence[Sequence[Limit]]) -> Rule:
    """Keep each limit of `limits[b]` in sentence b: a token that would exceed it is banned."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        banned: set[int] = set()
        for weights, highest in limits[sentence]:
            left = highest - sum(weights.get(i, 0) for i in written)
            banned |= {i for i, weight in weights.items() if weight > left}
        return Restriction(banned=banned) if banned else None

    return rule


Spelling = tuple[int, ...]
Order = Sequence[Sequence[Spelling]]
"""Phrases, each in several spellings, that may occur only one after the other."""


def in_order(orders: Sequence[Sequence[Order]]) -> Rule:
    """Let sentence b complete no phrase of an order before the phrases that come earlier there."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        banned: set[int] = set()
        for order in orders[sentence]:
            following = order[_seen_phrases(order, written) :]
            early = {spelling[-1] for phrase in following[1:] for spelling in phrase if _is_next(spelling, written)}
            due = {spelling[-1] for phrase in following[:1] for spelling in phrase if _is_next(spelling, written)}
            banned |= early - due
        return Restriction(banned=banned) if banned else None

    return rule


def _seen_phrases(order: Order, ids: Sequence[int]) -> int:
    """Count the phrases of an order, from its first on, that occur in `ids` one after the other."""
    count = 0
    for end in range(1, len(ids) + 1):
        if count < len(order) and any(_ends_with(ids[:end], spelling) for spelling in order[count]):
            count += 1
    return count


def _is_next(spelling: Spelling, ids: Sequence[int]) -> bool:
    """Return True if one more token can complete this spelling."""
    return _ends_with(ids, spelling[:-1])


def _ends_with(ids: Sequence[int], end: Spelling) -> bool:
    return not end or tuple(ids[-len(end) :]) == end
