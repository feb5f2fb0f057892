"""Means of weights: over the last pauses (§6.1), or running along."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..errors import DataError
from ..files import write_whole
from ..nn import Transformer
from ..nn.weights import weights


class ExponentialMovingAverage:
    """An exponential mean of a model's weights: after each update d · mean + (1 − d) · weights.

    At the n-th update d is `keep`, but at most (1 + n) / (10 + n), so that the first weights, which
    are chance, are soon forgotten.
    """

    def __init__(self, model: Transformer, *, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    def update(self, model: Transformer, *, step: int) -> None:
        """Take the weights after update `step` in."""
        keep = min(self.decay, (1 + step) / (10 + step))
        now = [parameter.detach() for parameter in model.parameters()]
        torch._foreach_lerp_(list(self.tensors.values()), now, 1 - keep)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Be what a checkpoint remembers."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


@contextmanager
def swapped_weights(model: Transformer, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with other weights; its own come back afterwards, untouched."""
    own = {name: parameter.data for name, parameter in model.named_parameters()}
    try:
        for name, parameter in model.named_parameters():
            parameter.data = tensors[name].to(parameter.device)
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.data = own[name]


def save_snapshot(folder: Path, model: Transformer, *, step: int) -> None:
    """Keep the weights after update `step`, for a mean."""
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{step:08d}.safetensors", save(weights(model)))


def snapshots(folder: Path, *, until: int) -> list[Path]:
    """The snapshots in a folder up to update `until`, oldest first."""
    return sorted((path for path in folder.glob("[0-9]*.safetensors") if _step(path) <= until), key=_step)


def average_snapshots(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights in some snapshots, summed in double precision."""
    total: dict[str, Tensor] = {}
    for path in paths:
        try:
            tensors = load(path.read_bytes())
        except (OSError, SafetensorError) as error:
            raise DataError(f"{path} is no snapshot: {error}") from error
        for name, tensor in tensors.items():
            total[name] = total.get(name, torch.zeros(())) + tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def _step(path: Path) -> int:
    return int(path.stem)
