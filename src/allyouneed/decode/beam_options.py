"""Options of beam search: how many hypotheses it keeps, how it scores them, and when it stops (§6.1).

The probability of a sentence has one factor for each token, so long sentences are less probable than short ones. The
length penalty of Wu et al. (2016) compensates: the score of a sentence Y is log P(Y) / ((5 + |Y|) / 6)^α, where |Y|
counts tokens with the end token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .step import Hypothesis


class Penalty(Protocol):
    """A function that gives the divisor which turns a log-probability into a score.

    `length` is in tokens. The divisor must not fall as the length grows.
    """

    def __call__(self, length: int, *, alpha: float) -> float: ...


def length_penalty(length: int, *, alpha: float) -> float:
    """Compute the length penalty ((5 + |Y|) / 6)^α of Wu et al. (2016), equation 14."""
    return float(((5 + length) / 6) ** alpha)


def plain_length_penalty(length: int, *, alpha: float) -> float:
    """Compute the length penalty |Y|^α. With α = 1 the score is the mean log-probability per token."""
    return float(length**alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOptions:
    """How many hypotheses a beam search keeps and returns, and when it stops.

    A sentence has `beam` active hypotheses, and the search returns the `nbest` best that ended. Once `beam` ·
    `patience` hypotheses have ended (after Kasai et al., 2022), the search stops unless the next step may still improve
    the result. With `wait_for_beam` it stops by the rule of Hugging Face transformers.
    """

    beam: int
    alpha: float
    penalty: Penalty = length_penalty
    patience: float = 1.0
    nbest: int = 1
    wait_for_beam: bool = False

    def hypothesis(self, ids: list[int], total: float, length: int, *, finished: bool = True) -> Hypothesis:
        """Make a hypothesis of `length` tokens, with its score."""
        return Hypothesis(ids, total, self.score(total, length), finished)

    def score(self, total: float, length: int) -> float:
        """Compute the score of a hypothesis of `length` tokens with the log-probability `total`."""
        return total / self.penalty(length, alpha=self.alpha)

    def is_decided(self, ended: Sequence[Hypothesis], best_total: float, length: int, max_length: int) -> bool:
        """Return True if the active hypotheses are unlikely to enter the `nbest` best, so that the search may stop.

        `best_total` is the highest log-probability of the active hypotheses, which have `length` tokens. A
        log-probability can only fall, so a hypothesis can at best keep its own until the length limit; the search goes
        on while that would score well enough. Once `beam` · `patience` hypotheses have ended, only the score at the
        next step counts. Stopping at a number of ended hypotheses without comparing scores would keep bad hypotheses
        that ended early.
        """
        if self.wait_for_beam:  # the rule of Hugging Face transformers with early_stopping=False
            return self._are_worse(ended, self.beam, best_total, length)
        enough = len(ended) >= self.beam * self.patience
        return self._are_worse(ended, self.nbest, best_total, length + 1 if enough else max_length)

    def _are_worse(self, ended: Sequence[Hypothesis], count: int, total: float, length: int) -> bool:
        """Return True if `count` ended hypotheses score at least as high as `total` would at `length` tokens."""
        if len(ended) < count:
            return False
        scores = sorted(hypothesis.score for hypothesis in ended)
        return scores[-count] >= self.score(total, length)
