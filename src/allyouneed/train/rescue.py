"""What keeps a run alive: batches that do not fit are cut, and a run that diverges goes back and slows down."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..errors import TrainingError
from ..nn import Transformer
from .place import Place

SKIPPED_IN_A_ROW = 5  # updates not finite before a run goes back to its last checkpoint
RETREATS = 5  # in a row, before it gives up


class Diverged(Exception):  # noqa: N818  it is caught by the run, never shown
    """Several updates in a row were not finite."""


class Gradients(Protocol):
    """What adds a loss's gradients to a model's, in so many pieces, and returns the loss."""

    def __call__(self, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, pieces: int) -> Tensor: ...


def until_it_fits(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, pieces: int
) -> tuple[Tensor, int]:
    """The loss of some batches, its gradients in the model, and in how many pieces a batch had to be cut.

    Begins with `pieces` and doubles them whenever memory runs out. Refuses when a single sentence is
    too much.
    """
    while (loss := _attempt(gradients, model, batches, config, pieces)) is None:
        largest = max(len(batch.source) for batch in batches)
        if pieces >= largest:
            raise TrainingError(
                "memory runs out on a single sentence pair; make the model smaller, or drop long pairs with "
                "model.max_length"
            )
        pieces *= 2
        model.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return loss, pieces


def _attempt(
    gradients: Gradients, model: Transformer, batches: Sequence[Batch], config: TrainConfig, pieces: int
) -> Tensor | None:
    # A function of its own, so that nothing holds the failed attempt's tensors when the next begins.
    try:
        return gradients(model, batches, config, pieces=pieces)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the processor."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "DefaultCPUAllocator" in str(error)


def retreat(place: Place, go_back: Callable[[], Place]) -> Place:
    """After several updates that were not finite: the last checkpoint's place, with half the rate.

    Refuses when that has not helped several times in a row.
    """
    if place.retreats == RETREATS:
        raise TrainingError(
            f"the loss is not finite around update {place.step:,}, even with {place.rate:g} times the rate; "
            "lower train.rate, lengthen train.warmup or set train.clip_norm=1, and begin anew"
        )
    back = go_back()
    back.rate, back.retreats, back.skipped = place.rate / 2, place.retreats + 1, place.skipped
    back.skipped_in_a_row, back.pieces = 0, place.pieces
    return back
