"""A linear map whose weights are whole numbers from −127 to 127, and a scale for each output.

The vectors that go in are rounded too, each to whole numbers from −127 to 127 and a scale of its own, so
the products are of whole numbers: four times as many fit in a register, and a quarter of the memory is
read. Sums of whole numbers are exact, so a vector becomes the same in any company, whichever kernel does
it. `rounded` is the definition of what becomes of the weights.

This file alone knows PyTorch's quantized operators. In torch 2.13 they are the quickest of all that
it has at the sizes of a decoder (docs/decoding-speed.md has the others), since one call rounds,
multiplies and scales; but the tensors they take are deprecated, and one day this file has to change.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from ..errors import ConfigError
from .dispatch import fbgemm_pays


def supports_int8(device: torch.device) -> bool:
    """Whether there are int8 operators here: on x86 processors."""
    return device.type == "cpu" and {"fbgemm", "onednn"} <= set(torch.backends.quantized.supported_engines)


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (out, in) → int8 of the same shape and scales (out,), so that weight ≈ scale · int8."""
    scale = weight.abs().amax(1).clamp_(min=1e-12) / 127
    return (weight / scale[:, None]).round_().to(torch.int8), scale


class Int8Linear:
    """`F.linear(x, weight, bias)`, nearly. Shapes: (…, in) → (…, out), float32.

    What a row becomes does not depend on the others of a call. Refuses a device without int8 operators.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if not supports_int8(weight.device):
            raise ConfigError(
                f'precision "int8" needs an x86 processor; got {weight.device} with '
                f'{", ".join(torch.backends.quantized.supported_engines)}; use "float32"'
            )
        weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._size, self._width = weight.numel(), weight.size(1)
        # Without VNNI two products can overflow the 16 bits they are added in, unless vectors have 7 bits.
        self._seven_bits = not torch.cpu._is_vnni_supported()
        self._middle = 64 if self._seven_bits else 128
        numbers, scale = quantize(weight)
        self._scale, self._shift = scale, self._middle * numbers.sum(1, dtype=torch.float32)
        self._few = _packed(numbers, "fbgemm")
        self._many = self._few if self._seven_bits else _packed(numbers, "onednn")

    def __call__(self, x: Tensor) -> Tensor:
        # The operator takes one scale for all rows: from 0, or their least number if it is lower, to their greatest.
        # So each row is stretched and moved until it lies between 1 and 255, and what is furthest from its middle,
        # 128, becomes 255, by a scale below 0 if that is the row's least number. Then one step is 1, in every call.
        low, high = x.aminmax(dim=-1, keepdim=True)
        scale = torch.where(high >= -low, high.clamp_min_(1e-30), low).div_(self._middle - 1)
        moved = (x / scale).round_().add_(self._middle)  # rounded, so that the greatest is 255 to the bit
        packed = self._few if fbgemm_pays(moved.numel() // self._width * self._size) else self._many
        found: Tensor = torch.ops.quantized.linear_dynamic(moved, packed, self._seven_bits)
        found.sub_(self._shift).mul_(self._scale).mul_(scale)
        return found if self._bias is None else found.add_(self._bias)


def _packed(numbers: Tensor, engine: str) -> Any:
    chosen = torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")  # see above
        torch.backends.quantized.engine = engine
        try:
            # Scales of 1: what comes out are whole numbers, and both engines agree on these to the bit.
            ones, zeros = torch.ones(len(numbers), dtype=torch.float64), torch.zeros(len(numbers), dtype=torch.int64)
            tensor = torch._make_per_channel_quantized_tensor(numbers, ones, zeros, 0)
            return torch.ops.quantized.linear_prepack(tensor, None)
        finally:
            torch.backends.quantized.engine = chosen
