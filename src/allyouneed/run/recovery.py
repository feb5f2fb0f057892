"""Recovery: a run that diverges is rolled back to its last checkpoint."""

from collections.abc import Callable, Iterable

from torch import Tensor

from ..errors import TrainingError
from .state import MAX_SKIPPED_IN_A_ROW, TrainState

MAX_ROLLBACKS = 5  # in a row, before the run ends


def divergence(state: TrainState, *, is_last: bool) -> str:
    """The reason why the run counts as diverged after its last updates; empty if it does not."""
    if state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW:
        return f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite"
    if is_last and state.skipped_in_a_row == state.step:
        return f"all {state.step} updates were not finite"
    return ""


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether every number in some tensors is finite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def rollback(state: TrainState, reason: str, restore: Callable[[], TrainState]) -> TrainState:
    """The state of the last checkpoint, with half the learning rate, after a run has diverged for `reason`.

    Refuses when `MAX_ROLLBACKS` in a row have not helped.
    """
    if state.rollbacks == MAX_ROLLBACKS:
        raise TrainingError(
            f"{reason} around update {state.step:,}, even with {state.learning_rate_factor:g} times the learning rate; "
            "lower train.learning_rate, lengthen train.warmup or set train.clip_norm=1, and start again"
        )
    restored = restore()
    restored.learning_rate_factor = state.learning_rate_factor / 2
    restored.rollbacks, restored.skipped, restored.skipped_in_a_row = state.rollbacks + 1, state.skipped, 0
    restored.micro_batches = state.micro_batches
    return restored
