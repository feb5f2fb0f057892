"""The learned tensors of a model, by name. A shared tensor appears once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import ConfigError
from .transformer import Transformer


def weights(model: Transformer) -> dict[str, Tensor]:
    """Copy every learned tensor to the CPU, by name. A shared tensor appears once."""
    return {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}


def weight_buffers(model: Transformer) -> dict[str, memoryview[Any]]:
    """Return every learned tensor in float32 as a plain buffer, for code that does not use PyTorch."""
    return {name: tensor.float().numpy().data for name, tensor in weights(model).items()}


def set_weights(model: Transformer, tensors: dict[str, Tensor]) -> None:
    """Copy tensors, as returned by `weights`, into the model. Refuses other names or shapes."""
    require_shapes(model, {name: tensor.shape for name, tensor in tensors.items()})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def require_shapes(model: Transformer, shapes: Mapping[str, Sequence[int]]) -> None:
    """Refuse names or shapes that differ from those of `weights(model)`."""
    parameters = dict(model.named_parameters())
    if parameters.keys() != shapes.keys():
        different = sorted(parameters.keys() ^ shapes.keys())
        raise ConfigError(f"names differ from the model's, {different[0]} for one")
    for name, parameter in parameters.items():
        if tuple(parameter.shape) != tuple(shapes[name]):
            raise ConfigError(f"{name} must have shape {tuple(parameter.shape)}; got {tuple(shapes[name])}")
