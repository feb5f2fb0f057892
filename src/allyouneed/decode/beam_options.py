"""Options of a beam search: how many hypotheses, which score ranks them, when it stops (§6.1).

The probability of a sentence is a product of one factor per token, so a longer sentence is less probable. The length
penalty of Wu et al. (2016) makes up for that: the score of a sentence Y is log P(Y) / ((5 + |Y|) / 6)^α, the end token
counted in |Y|.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Protocol

from .step import Hypothesis


class Penalty(Protocol):
    """The divisor of a log-probability that makes it a score; it never falls as `length` (in tokens) grows."""

    def __call__(self, length: int, *, alpha: float) -> float: ...


def length_penalty(length: int, *, alpha: float) -> float:
    """Compute ((5 + |Y|) / 6)^α, Wu et al. (2016), equation 14."""
    return float(((5 + length) / 6) ** alpha)


def plain_length_penalty(length: int, *, alpha: float) -> float:
    """Compute |Y|^α; with an α of 1 a score is the mean log-probability of a token."""
    return float(length**alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOptions:
    """How many hypotheses a beam search keeps, and which it returns.

    `beam` hypotheses of a sentence are active at once, and the `nbest` best that ended are returned. Once
    `beam` · `patience` hypotheses have ended (after Kasai et al., 2022), the search of a sentence stops unless its next
    step may still improve the result; with `wait_for_beam` it follows the rule of Hugging Face transformers.
    """

    beam: int
    alpha: float
    penalty: Penalty = length_penalty
    patience: float = 1.0
    nbest: int = 1
    wait_for_beam: bool = False

    def hypothesis(self, ids: list[int], total: float, length: int, *, finished: bool = True) -> Hypothesis:
        """Make a hypothesis of `length` tokens with its score."""
        return Hypothesis(ids, total, self.score(total, length), finished)

    def score(self, total: float, length: int) -> float:
        """Compute the score of a log-probability of `length` tokens."""
        return total / self.penalty(length, alpha=self.alpha)

    def is_decided(self, ended: Sequence[Hypothesis], best_total: float, length: int, max_length: int) -> bool:
        """Return True if no active hypothesis is likely to end up among the `nbest` best.

        `best_total` is the highest log-probability of the active hypotheses, which have `length` tokens. A total only
        falls, so an active hypothesis scores highest if it ends at the limit with the total it has now. Once `beam` ·
        `patience` hypotheses have ended, only its score at the next step counts. Counting ended hypotheses alone would
        not do: a bad one that ended early would stay, however good the active ones are.
        """
        if self.wait_for_beam:  # the rule of Hugging Face transformers with early_stopping=False
            return self._are_worse(ended, self.beam, best_total, length)
        enough = len(ended) >= self.beam * self.patience
        return self._are_worse(ended, self.nbest, best_total, length + 1 if enough else max_length)

    def _are_worse(self, ended: Sequence[Hypothesis], count: int, total: float, length: int) -> bool:
        """Return True if `count` ended hypotheses score no lower than this total and length would."""
        worst_first = sorted(nlargest(count, (hypothesis.score for hypothesis in ended)))
        return len(worst_first) == count and worst_first[0] >= self.score(total, length)
