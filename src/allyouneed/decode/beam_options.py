"""What a beam search is asked for: how many hypotheses, and by which score they are ranked (§6.1).

The probability of a sentence is a product of one factor per token, so a longer sentence is less probable. The length
penalty of Wu et al. (2016) makes up for that: the score of a sentence Y is log P(Y) / ((5 + |Y|) / 6)^α, the end token
counted in |Y|.
"""

from dataclasses import dataclass
from typing import Protocol


class Penalty(Protocol):
    """What a log-probability is divided by to make a score; it never falls as `length` (in tokens) grows."""

    def __call__(self, length: int, *, alpha: float) -> float: ...


def length_penalty(length: int, *, alpha: float) -> float:
    """((5 + |Y|) / 6)^α, Wu et al. (2016), equation 14."""
    return float(((5 + length) / 6) ** alpha)


def plain_length_penalty(length: int, *, alpha: float) -> float:
    """|Y|^α; with an α of 1 a score is the mean log-probability of a token."""
    return float(length**alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOptions:
    """How many hypotheses a beam search keeps, and which it returns.

    `beam` hypotheses of a sentence are active at once, and the `nbest` best that ended are returned. A search of a
    sentence stops early once `beam` · `patience` hypotheses have ended (Kasai et al., 2022), or with `wait_for_beam` by
    the rule of Hugging Face transformers (ended.py).
    """

    beam: int
    alpha: float
    penalty: Penalty = length_penalty
    patience: float = 1.0
    nbest: int = 1
    wait_for_beam: bool = False

    def divisor(self, length: int) -> float:
        """What the log-probability of a hypothesis of `length` tokens is divided by to make its score."""
        return self.penalty(length, alpha=self.alpha)
