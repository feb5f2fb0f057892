"""Weights at the last few validations, in files, for their average at the end of a run."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from ..nn import Transformer
from ..nn.weights import weights
from ..train.averaging import average_weights
from .tensor_file import read_tensors, write_tensors


def snapshot_path(folder: Path, step: int) -> Path:
    """The file with the weights after update `step`."""
    return folder / f"{step:08d}.safetensors"


def save_snapshot(folder: Path, model: Transformer, *, step: int) -> None:
    """Write the weights after update `step`, for an average at the end."""
    folder.mkdir(exist_ok=True)
    write_tensors(snapshot_path(folder, step), weights(model))


def average_snapshots(folder: Path, steps: Sequence[int]) -> dict[str, Tensor]:
    """The mean of the weights after some updates. Refuses a damaged or missing snapshot."""
    return average_weights(read_tensors(snapshot_path(folder, step))[0] for step in steps)


def remove_snapshots(folder: Path, *, keep: Sequence[int]) -> None:
    """Remove all snapshots but those of the updates in `keep`."""
    kept = {snapshot_path(folder, step) for step in keep}
    for path in folder.glob("[0-9]*.safetensors"):
        if path not in kept:
            path.unlink()
