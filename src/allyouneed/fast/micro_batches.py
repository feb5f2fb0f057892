"""Split batches that do not fit into memory into micro-batches."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..errors import TrainingError, is_out_of_memory
from ..nn import Transformer
from ..train.gradients import Gradients


class MicroBatches:
    """Computes the `gradients` of batches split into `count` parts each. The count doubles when memory runs out.

    Without dropout, splitting does not change the result. Refuses a batch whose single pairs do not fit.
    """

    def __init__(self, gradients: Gradients, count: int = 1) -> None:
        self.gradients = gradients
        self.count = count

    def __call__(self, model: Transformer, batches: Sequence[Batch], config: TrainConfig) -> tuple[Tensor, Tensor]:
        """Add the gradients of the batches; see `Gradients`."""
        while (result := self._attempt(model, batches, config)) is None:
            if self.count >= max(len(batch.source) for batch in batches):
                raise TrainingError(
                    "memory runs out on a single sentence pair; make the model smaller, or drop long pairs with "
                    "model.max_length"
                )
            self.count *= 2
            model.zero_grad()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        return result

    def _attempt(
        self, model: Transformer, batches: Sequence[Batch], config: TrainConfig
    ) -> tuple[Tensor, Tensor] | None:
        # In a function of its own, so that no reference keeps the tensors of a failed attempt in memory.
        try:
            return self.gradients(model, [part for batch in batches for part in batch.split(self.count)], config)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return None
