"""Averages of weights: over the last validations (§6.1), or an exponential moving average."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ..machine.device import runs_ahead
from ..nn import Transformer


def copy_weights(model: Transformer) -> dict[str, Tensor]:
    """Copy the model's parameters, by name. The copies stay on its device."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def update_ema(ema: Mapping[str, Tensor], model: Transformer, *, decay: float, step: int, is_finite: Tensor) -> None:
    """Move an exponential moving average towards the weights, in place: ema ← d · ema + (1 − d) · weights.

    At update `step`, d is the smaller of `decay` and (1 + step) / (10 + step), so that the average soon forgets the
    random initial weights. If `is_finite`, a bool tensor on the model's device, is False, nothing changes.
    """
    decay = min(decay, (1 + step) / (10 + step))
    parameters = dict(model.named_parameters())
    share = (1 - decay) * (is_finite if runs_ahead(is_finite.device) else bool(is_finite))
    for name, average in ema.items():
        average.lerp_(parameters[name].detach(), share)


@contextmanager
def swapped_weights(model: Transformer, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Give the model other weights inside the `with` block, and restore its own weights afterwards."""
    before = {name: parameter.data for name, parameter in model.named_parameters()}
    try:
        for name, parameter in model.named_parameters():
            parameter.data = tensors[name].to(parameter.device)
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.data = before[name]


def average_weights(models: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Average tensors of the same names and shapes. The sum is in double precision, the result in float32."""
    total: dict[str, Tensor] = {}
    count = 0
    for tensors in models:
        count += 1
        for name, tensor in tensors.items():
            total[name] = total.get(name, torch.zeros(())) + tensor.double()
    return {name: (tensor / count).float() for name, tensor in total.items()}
