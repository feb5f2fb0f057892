"""Averages of weights: over the last validations (§6.1), or an exponential moving average."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from ..nn import Transformer
from ..nn.weights import weights
from .tensor_file import read_tensors, write_tensors


def copy_weights(model: Transformer) -> dict[str, Tensor]:
    """A copy of the model's parameters by name, on its device."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def update_ema(
    ema: Mapping[str, Tensor], model: Transformer, *, decay: float, step: int, is_finite: Tensor | None = None
) -> None:
    """Move an exponential moving average, in place, to d · ema + (1 − d) · weights.

    At update `step`, d is `decay` but at most (1 + step) / (10 + step), so that the random weights of the
    beginning are soon forgotten. With `is_finite`, a bool on the device, it moves only if that is True.
    """
    decay = min(decay, (1 + step) / (10 + step))
    parameters = dict(model.named_parameters())
    averages, now = [ema[name] for name in parameters], [parameter.detach() for parameter in parameters.values()]
    if is_finite is None:
        torch._foreach_lerp_(averages, now, 1 - decay)
        return
    changes = torch._foreach_sub(now, averages)
    torch._foreach_mul_(changes, (1 - decay) * is_finite)
    torch._foreach_add_(averages, changes)


@contextmanager
def swapped_weights(model: Transformer, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with other weights inside the block; afterwards its previous weights are restored."""
    before = {name: parameter.data for name, parameter in model.named_parameters()}
    try:
        for name, parameter in model.named_parameters():
            parameter.data = tensors[name].to(parameter.device)
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.data = before[name]


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


def average_weights(models: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of tensors of the same names and shapes, summed in double precision, in float32."""
    total: dict[str, Tensor] = {}
    count = 0
    for tensors in models:
        count += 1
        for name, tensor in tensors.items():
            total[name] = total.get(name, torch.zeros(())) + tensor.double()
    return {name: (tensor / count).float() for name, tensor in total.items()}


def remove_snapshots(folder: Path, *, keep: Sequence[int]) -> None:
    """Remove all snapshots but those of the updates in `keep`."""
    kept = {snapshot_path(folder, step) for step in keep}
    for path in folder.glob("[0-9]*.safetensors"):
        if path not in kept:
            path.unlink()
