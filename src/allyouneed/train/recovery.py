"""Recovery: batches that do not fit into memory are split; a run that diverges is rolled back."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..errors import TrainingError, is_out_of_memory
from ..nn import Transformer
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


class Gradients(Protocol):
    """A function that adds a loss's gradients to a model's, batch by micro-batch, and returns the loss."""

    def __call__(
        self, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int
    ) -> Tensor: ...


def with_fitting_micro_batches(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int
) -> tuple[Tensor, int]:
    """The loss of some batches, and the number of micro-batches it took; the gradients are in the model.

    Starts with `micro_batches` and doubles the number whenever memory runs out. Refuses when a single sentence pair
    does not fit.
    """
    while (loss := _attempt(gradients, model, batches, config, micro_batches)) is None:
        if micro_batches >= max(len(batch.source) for batch in batches):
            raise TrainingError(
                "memory runs out on a single sentence pair; make the model smaller, or drop long pairs with "
                "model.max_length"
            )
        model.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        micro_batches *= 2
    return loss, micro_batches


def _attempt(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, micro_batches: int
) -> Tensor | None:
    # A function of its own, so that no reference keeps the tensors of a failed attempt when the next one starts.
    try:
        return gradients(model, batches, config, micro_batches=micro_batches)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None


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
