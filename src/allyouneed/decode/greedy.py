"""The likeliest next id, until the end."""

from torch import Tensor

from .step import AnyState, Hypothesis, Step
from .walk import gather, walk


def likeliest(log_probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """A `Choose`: of every row, the highest log-probability and the id it belongs to."""
    best = log_probabilities.max(-1)
    return best.values, best.indices


def greedy_search(
    step: Step[AnyState], state: AnyState, *, sos_id: int, eos_id: int, max_lengths: Tensor
) -> list[Hypothesis]:
    """For each of B sentences, the sentence that takes the likeliest id at every step.

    `max_lengths` (B,) bounds each one's ids, the end sign included. Sentences that have ended leave
    the batch. The score is the log-probability.
    """
    steps = walk(step, state, choose=likeliest, sos_id=sos_id, eos_id=eos_id, max_lengths=max_lengths)
    return gather(steps, sentences=len(max_lengths), eos_id=eos_id)
