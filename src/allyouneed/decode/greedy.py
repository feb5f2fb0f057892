"""The likeliest next id, until the end."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor

from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import collect_hypotheses, generate_stepwise


def most_likely(log_probabilities: Tensor, _: Sequence[int]) -> tuple[Tensor, Tensor]:
    """A `Choose`: of every row, the highest log-probability and the id it belongs to."""
    best = log_probabilities.max(-1)
    return best.values, best.indices


def greedy_search(step: Step[AnyState], state: AnyState, **limits: Unpack[SearchLimits]) -> list[Hypothesis]:
    """For each of B sentences, the sentence that takes the likeliest id at every step.

    Sentences that have ended leave the batch. The score is the log-probability.
    """
    steps = generate_stepwise(step, state, choose=most_likely, **limits)
    return collect_hypotheses(steps, sentences=len(limits["max_lengths"]), eos_id=limits["eos_id"])
