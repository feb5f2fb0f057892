"""Rules about the next token, for any search.

A rule sees the tokens of a hypothesis and says which tokens may come next. `RuledStep` applies rules to a `Step`, so
that searches need no code for rules and a search without rules loses no time. `EndedStep` ends sentences at a limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from .step import Continuation, Restriction, Step, WrappedStep

Rule = Callable[[int, Sequence[int]], Restriction | None]
"""A function of a sentence's index and a hypothesis's tokens, without the start token. It restricts the next token."""


class RuledStep(WrappedStep):
    """A `Step` that applies rules, in order.

    A rule that would leave no possible token is ignored for that hypothesis at that step.
    """

    def __init__(self, step: Step, rules: Sequence[Rule], sentences: int) -> None:
        super().__init__(step, sentences)
        self._rules = rules
        self._written: list[list[int]] = [[] for _ in self._sentences]  # per hypothesis, with the start token

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Advance as `Step` does, then apply the rules to every hypothesis."""
        super().__call__(hypotheses, tokens)
        self._written = [[*self._written[n], token] for n, token in zip(hypotheses, tokens, strict=True)]
        for rule in self._rules:
            for n, (sentence, written) in enumerate(zip(self._sentences, self._written, strict=True)):
                restriction = rule(sentence, written[1:])
                if restriction:
                    self.restrict(n, restriction)


class EndedStep(WrappedStep):
    """A `Step` that ends sentence b after at most `max_lengths[b]` tokens, by forcing the last one to be the end token.

    The forced end token has log-probability 0, so it does not change the score.
    """

    def __init__(self, step: Step, max_lengths: Sequence[int], *, eos_id: int) -> None:
        super().__init__(step, len(max_lengths))
        self._max_lengths = max_lengths
        self._eos_id = eos_id
        self._length = 0

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Advance as `Step` does, and count the tokens."""
        super().__call__(hypotheses, tokens)
        self._length += 1

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Find continuations as `Step` does; at its limit, a hypothesis can only end."""
        found = super().best(totals, count)
        for i, (sentence, group) in enumerate(groupby(range(len(totals)), key=self._sentences.__getitem__)):
            if self._length == self._max_lengths[sentence]:
                possible = [n for n in group if totals[n] > -math.inf]
                best_first = sorted(possible, key=lambda n: -totals[n])
                found[i] = [Continuation(totals[n], n, self._eos_id) for n in best_first[:count]]
        return found

    def log_probability(self, hypothesis: int, token: int) -> float:
        """Return a log-probability as `Step` does; at the limit, 0 for the end token."""
        if self._length < self._max_lengths[self._sentences[hypothesis]]:
            return super().log_probability(hypothesis, token)
        return 0.0 if token == self._eos_id else -math.inf


def minimum_length(min_lengths: Sequence[int], *, eos_id: int) -> Rule:
    """Make a rule: sentence b has at least `min_lengths[b]` tokens, counting the end token."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        return Restriction(banned=[eos_id]) if len(written) + 1 < min_lengths[sentence] else None

    return rule


def no_repeated_ngram(n: int) -> Rule:
    """Make a rule: no n-gram of tokens occurs twice in a sentence (Paulus et al., 2018)."""

    def rule(_: int, written: Sequence[int]) -> Restriction | None:
        latest = list(written[len(written) - n + 1 :])  # the next n-gram will begin with these n - 1 tokens
        starts = range(len(written) - n + 1)
        banned = {written[i + n - 1] for i in starts if list(written[i : i + n - 1]) == latest}
        return Restriction(banned=banned) if banned else None

    return rule


def repetition_penalty(penalty: float) -> Rule:
    """Make a rule: multiply the log-probability of every token that already occurred by `penalty`.

    A penalty above 1 makes repetition less likely. Keskar et al. (2019) scale logits, which may be positive or
    negative; log-probabilities are never positive.
    """

    def rule(_: int, written: Sequence[int]) -> Restriction | None:
        return Restriction(penalized=set(written), penalty=penalty) if written else None

    return rule


def forced_prefix(prefixes: Sequence[Sequence[int]]) -> Rule:
    """Make a rule: sentence b begins with the tokens `prefixes[b]`."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        prefix = prefixes[sentence]
        return Restriction(forced=prefix[len(written)]) if len(written) < len(prefix) else None

    return rule


Limit = tuple[Mapping[int, int], int]
"""Weights of tokens, and the highest sum of weights that a sentence may reach."""


def at_most(limits: Sequence[Sequence[Limit]]) -> Rule:
    """Make a rule: sentence b stays within every limit of `limits[b]`. A token that would exceed one is banned."""

    def rule(sentence: int, written: Sequence[int]) -> Restriction | None:
        banned: set[int] = set()
        for weights, highest in limits[sentence]:
            left = highest - sum(weights.get(i, 0) for i in written)
            banned |= {i for i, weight in weights.items() if weight > left}
        return Restriction(banned=banned) if banned else None

    return rule


Spelling = tuple[int, ...]
Order = Sequence[Sequence[Spelling]]
"""Phrases, each with one or more spellings, that may only occur in this order."""


def in_order(orders: Sequence[Sequence[Order]]) -> Rule:
    """Make a rule: sentence b completes the phrases of each order in `orders[b]` only in that order."""

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
    """Count how many phrases of an order occur in `ids`, one after another, starting with the first phrase."""
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
