"""The most likely next token, until the end token."""

from collections.abc import Sequence

from ..lazy import Tensor
from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import TokenChooser, collect_hypotheses, generate_stepwise


def most_likely(log_probabilities: Tensor, _: Sequence[int]) -> tuple[Tensor, Tensor]:
    """A `TokenChooser`: the highest log-probability of each row, and its token."""
    best = log_probabilities.max(-1)
    return best.values, best.indices


def find_most_likely(step: Step[AnyState]) -> TokenChooser:
    """The step's own `most_likely` if it has one, else the function above."""
    return getattr(step, "most_likely", most_likely)


def greedy_search(step: Step[AnyState], state: AnyState, limits: SearchLimits) -> list[Hypothesis]:
    """For each of B sentences, the hypothesis that takes the most likely token at every step.

    Sentences that have ended leave the batch. The score is the log-probability.
    """
    return collect_hypotheses(generate_stepwise(step, state, limits, choose=find_most_likely(step)), limits)
