"""What keeps a run alive: batches that do not fit are cut, and a run that diverges goes back and slows down."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..errors import TrainingError
from ..nn import Transformer
from .state import TrainState

MAX_SKIPPED_IN_A_ROW = 5  # updates not finite before a run goes back to its last checkpoint
MAX_ROLLBACKS = 5  # in a row, before it gives up


class Diverged(Exception):  # noqa: N818  it is caught by the run, never shown
    """What is not finite: several updates in a row, the weights, or what a pause measured of them."""


def refuse_broken(tensors: Iterable[Tensor]) -> None:
    """Raise `Diverged` if a number among the weights, or what an optimizer keeps of them, is not finite."""
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        raise Diverged("the weights were not finite")


class Gradients(Protocol):
    """What adds a loss's gradients to a model's, in so many pieces, and returns the loss."""

    def __call__(
        self, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int
    ) -> Tensor: ...


def with_fitting_micro_batches(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int
) -> tuple[Tensor, int]:
    """The loss of some batches, its gradients in the model, and in how many pieces a batch had to be cut.

    Begins with `pieces` and doubles them whenever memory runs out. Refuses when a single sentence is
    too much.
    """
    while (loss := _attempt(gradients, model, batches, config, micro_batches)) is None:
        largest = max(len(batch.source) for batch in batches)
        if micro_batches >= largest:
            raise TrainingError(
                "memory runs out on a single sentence pair; make the model smaller, or drop long pairs with "
                "model.max_length"
            )
        micro_batches *= 2
        model.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return loss, micro_batches


def _attempt(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, micro_batches: int
) -> Tensor | None:
    # A function of its own, so that nothing holds the failed attempt's tensors when the next begins.
    try:
        return gradients(model, batches, config, micro_batches=micro_batches)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the processor."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "DefaultCPUAllocator" in str(error)


def rollback(state: TrainState, why: Diverged, restore: Callable[[], TrainState]) -> TrainState:
    """After what was not finite: the last checkpoint's place, with half the rate.

    Refuses when that has not helped several times in a row.
    """
    if state.rollbacks == MAX_ROLLBACKS:
        raise TrainingError(
            f"{why} around update {state.step:,}, even with {state.learning_rate_factor:g} times the rate; "
            "lower train.learning_rate, lengthen train.warmup or set train.clip_norm=1, and begin anew"
        )
    back = restore()
    back.learning_rate_factor, back.rollbacks, back.skipped = (
        state.learning_rate_factor / 2,
        state.rollbacks + 1,
        state.skipped,
    )
    back.skipped_in_a_row, back.micro_batches = 0, state.micro_batches
    return back
