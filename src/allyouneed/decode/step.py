"""The interface between a search and a model: `Step`, the limits of a search, and its results."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Continuation(NamedTuple):
    """One more token for a hypothesis, and the log-probability of the hypothesis with this token."""

    total: float
    hypothesis: int
    token: int


class Restriction(NamedTuple):
    """A restriction of a hypothesis's next token, on top of the model's probabilities.

    The log-probabilities of `penalized` tokens are multiplied by `penalty`. If `forced` is set, no other token is
    possible. The `banned` tokens are impossible too, unless that would leave no token.
    """

    banned: Collection[int] = ()
    forced: int | None = None
    penalized: Collection[int] = ()
    penalty: float = 1.0


class Step(Protocol):
    """A model as a search sees it: it extends N hypotheses of B sentences by one token per step.

    The hypotheses of a sentence are adjacent. Before the first call each sentence has one, empty hypothesis. A `Step`
    serves only one search.
    """

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Extend hypotheses by a token each, and compute the probabilities of their next tokens.

        New hypothesis n is the old hypothesis `hypotheses[n]` extended by `tokens[n]`. An old hypothesis that is not
        listed is dropped, and a sentence without hypotheses leaves the batch. The sentences must stay in order.
        """

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        """Restrict the next token of one hypothesis."""

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Find the `count` most likely continuations of each sentence, best first, or as many as are possible.

        `totals` are the log-probabilities of the hypotheses so far. Equally likely continuations are ordered by
        hypothesis, then by token.
        """
        ...

    def log_probability(self, hypothesis: int, token: int) -> float:
        """Return the log-probability of a next token, in nats."""
        ...


class WrappedStep:
    """A `Step` that passes all calls on to another step. Subclasses override some of them."""

    def __init__(self, step: Step, sentences: int) -> None:
        self._step = step
        self._sentences = list(range(sentences))  # the sentence of each hypothesis

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Advance the inner step, and keep track of each hypothesis's sentence."""
        self._step(hypotheses, tokens)
        self._sentences = [self._sentences[n] for n in hypotheses]

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        self._step.restrict(hypothesis, restriction)

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        return self._step.best(totals, count)

    def log_probability(self, hypothesis: int, token: int) -> float:
        return self._step.log_probability(hypothesis, token)


def never_cancelled(_: int) -> bool:
    """Return False, for a search that cannot be cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """The tokens that begin and end the B sentences of a search, and the maximum length of each.

    A sentence begins with `sos_id` and ends with `eos_id`, or is cut off after `max_lengths[b]` tokens, counting the
    end token. After every step the search calls `is_cancelled` with the index of each sentence. If it returns True, the
    sentence leaves the batch and gets no hypotheses; from then on, `is_cancelled` must return True for this sentence.
    """

    sos_id: int
    eos_id: int
    max_lengths: Sequence[int]
    is_cancelled: Callable[[int], bool] = never_cancelled

    @property
    def sentences(self) -> int:
        """The number of sentences, B."""
        return len(self.max_lengths)


SURE = math.log(0.8)  # nats; an output whose mean log-probability per token is at least this is trusted


class Hypothesis(NamedTuple):
    """A sentence that a search found: its ids without the end token, and its log-probability in nats."""

    ids: list[int]
    log_probability: float
    score: float  # ranks hypotheses
    finished: bool = True  # False if it was cut off at its limit, before an end token

    @classmethod
    def of(cls, tokens: list[int], total: float, *, eos_id: int) -> Hypothesis:
        """Make a hypothesis from all tokens that were written. Its score is its log-probability."""
        finished = tokens[-1:] == [eos_id]
        return cls(tokens[:-1] if finished else tokens, total, total, finished)

    @property
    def tokens(self) -> int:
        """The number of tokens, with the end token."""
        return len(self.ids) + self.finished

    @property
    def confidence(self) -> float:
        """The mean log-probability of its tokens."""
        return self.log_probability / max(self.tokens, 1)

    @property
    def is_sure(self) -> bool:
        """True if the hypothesis ended with the end token and its confidence is at least `SURE`."""
        return self.finished and self.confidence >= SURE


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses: the finished ones first, each group by score."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
