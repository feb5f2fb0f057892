"""The checkpoints of a run: one file or, of a sharded run, a folder in which every worker has a file."""

from pathlib import Path

from torch.optim import Optimizer

from ..data.prepared_data import PreparedData
from ..nn import Transformer
from ..train.state import TrainState
from ..train.workers import Workers
from .checkpoint import load_checkpoint, save_checkpoint
from .sharded_checkpoint import load_sharded, newest_checkpoint, read_sharded_state, save_sharded

FILE, FOLDER = "checkpoint.safetensors", "checkpoints"


def has_checkpoint(output: Path) -> bool:
    """Whether a run in this folder can be continued."""
    return (output / FILE).exists() or newest_checkpoint(output / FOLDER) is not None


class Checkpoints:
    """Where a run is saved, in the folder `output`, and what it is restored from; `data` must be the same then."""

    def __init__(self, output: Path, data: PreparedData) -> None:
        self._file, self._folder, self._data = output / FILE, output / FOLDER, data

    def exist_sharded(self) -> bool:
        """Whether there is a checkpoint of a sharded run."""
        return newest_checkpoint(self._folder) is not None

    def read(self, model: Transformer, optimizer: Optimizer) -> TrainState:
        """The state of the run to continue; model and optimizer are restored with it, unless the run is sharded."""
        if (sharded := newest_checkpoint(self._folder)) is not None:
            return read_sharded_state(sharded, data=self._data.identity())
        return load_checkpoint(self._file, model, optimizer, data=self._data.identity())

    def write(self, model: Transformer, optimizer: Optimizer, state: TrainState) -> None:
        """Write the file; of several workers, the first one calls this alone."""
        save_checkpoint(self._file, model, optimizer, state, data=self._data.identity())

    def save(self, model: Transformer, optimizer: Optimizer, state: TrainState, workers: Workers) -> None:
        """Write the whole state of a run, whole or not at all; all workers take part."""
        if workers.is_sharded:
            save_sharded(self._folder, model, optimizer, state, data=self._data.identity(), workers=workers)
        else:
            with workers.whole_optimizer(optimizer):
                workers.from_first(lambda: self.write(model, optimizer, state))

    def restore(self, model: Transformer, optimizer: Optimizer, workers: Workers) -> TrainState:
        """Restore model, optimizer and random numbers, in each worker; returns the state of the run."""
        if workers.is_sharded and (sharded := newest_checkpoint(self._folder)):
            return load_sharded(sharded, model, optimizer, data=self._data.identity(), workers=workers)
        return load_checkpoint(self._file, model, optimizer, data=self._data.identity())
