"""`Step`, all that a search knows of a model; and where its sentences begin and end."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Continuation(NamedTuple):
    """One more token for a hypothesis, and the total log-probability it then has."""

    total: float
    hypothesis: int
    token: int


class Restriction(NamedTuple):
    """A limit on the next token of a hypothesis, beyond the model's probabilities.

    Log-probabilities of `penalized` tokens are multiplied by `penalty`. With `forced`, all other tokens become
    impossible; then the `banned` tokens do, unless none would be left.
    """

    banned: Collection[int] = ()
    forced: int | None = None
    penalized: Collection[int] = ()
    penalty: float = 1.0


class Step(Protocol):
    """A model that writes N hypotheses of B sentences, one token a step; a sentence's hypotheses are neighbours.

    Before the first step there is one, empty hypothesis for each sentence. A step is made for one search.
    """

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Compute the probabilities of the next token for new hypotheses.

        Hypothesis n is hypothesis `hypotheses[n]` of the step before, continued with `tokens[n]`. A hypothesis that
        is not named is dropped, and a sentence without hypotheses leaves the batch; sentences stay in order.
        """

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        """Restrict the next token of one hypothesis."""

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Find the `count` most likely continuations of each sentence, or as many as are possible, best first.

        `totals` are the log-probabilities of the hypotheses so far. Equally likely continuations are ordered by
        hypothesis, then by token.
        """
        ...

    def log_probability(self, hypothesis: int, token: int) -> float:
        """Return the log-probability of a token that may come next, in nats."""
        ...


class WrappedStep:
    """A `Step` of `sentences` sentences that passes everything on to another step, except what a subclass changes."""

    def __init__(self, step: Step, sentences: int) -> None:
        self._step = step
        self._sentences = list(range(sentences))  # of each hypothesis

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """As in `Step`."""
        self._step(hypotheses, tokens)
        self._sentences = [self._sentences[n] for n in hypotheses]

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        """As in `Step`."""
        self._step.restrict(hypothesis, restriction)

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """As in `Step`."""
        return self._step.best(totals, count)

    def log_probability(self, hypothesis: int, token: int) -> float:
        """As in `Step`."""
        return self._step.log_probability(hypothesis, token)


def never_cancelled(_: int) -> bool:
    """Return False: the `is_cancelled` of a search that is not to be cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Where the B sentences of a search begin and end.

    They begin with the token `sos_id` and end with `eos_id`, or are cut off at `max_lengths[b]` tokens, the end token
    counted. `is_cancelled` is called with the index of a sentence after each step; if it returns True, the sentence
    leaves the batch before the next step and gets no hypotheses. Once True for a sentence it must stay True.
    """

    sos_id: int
    eos_id: int
    max_lengths: Sequence[int]
    is_cancelled: Callable[[int], bool] = never_cancelled

    @property
    def sentences(self) -> int:
        """The number of sentences, B."""
        return len(self.max_lengths)


SURE = math.log(0.8)  # mean log-probability of a token from which on an output is an answer; nats


class Hypothesis(NamedTuple):
    """A sentence that a search found: its ids without the end token, and its log-probability in nats."""

    ids: list[int]
    log_probability: float
    score: float  # hypotheses are ranked by it
    finished: bool = True  # False: it was cut off at its limit, before its end token

    @classmethod
    def of(cls, tokens: list[int], total: float, *, eos_id: int) -> Hypothesis:
        """Make the hypothesis of all tokens that were written; its score is its log-probability."""
        finished = tokens[-1:] == [eos_id]
        return cls(tokens[:-1] if finished else tokens, total, total, finished)

    @property
    def tokens(self) -> int:
        """The number of tokens, the end token included."""
        return len(self.ids) + self.finished

    @property
    def confidence(self) -> float:
        """The mean log-probability of a token."""
        return self.log_probability / max(self.tokens, 1)

    @property
    def is_sure(self) -> bool:
        """True if the model ended it by itself, with a confidence of at least `SURE`."""
        return self.finished and self.confidence >= SURE


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Sort the finished before the unfinished, each by score."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
