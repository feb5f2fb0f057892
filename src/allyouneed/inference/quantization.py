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
    """`F.linear(x, weight, bias)` of quantized weights and inputs. Shapes: (…, in) → (…, out), float32.

    The result of a row does not depend on the other rows of a call. Refuses a device without int8 operators.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if not supports_int8(weight.device):
            raise ConfigError(
                f'precision "int8" needs an x86 processor; got {weight.device} with '
                f'{", ".join(torch.backends.quantized.supported_engines)}; use "float32"'
            )
        weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._size, self._width = weight.numel(), weight.size(1)
        # Without VNNI two products can overflow the 16 bits they are added in, unless inputs have 7 bits.
        self._seven_bits = not torch.cpu._is_vnni_supported()
        self._greatest = 127 if self._seven_bits else 255
        integers, self._scale = quantize(weight)
        self._sums = integers.sum(1, dtype=torch.float32)
        self._total = self._scale * self._sums
        self._few_rows = _packed(integers, "fbgemm")
        self._many_rows = self._few_rows if self._seven_bits else _packed(integers, "onednn")

    def __call__(self, x: Tensor) -> Tensor:
        # A number is about low + step · level, as in `kernels.linear_int8`, and levels are rounded in the same way.
        low, high = x.aminmax(dim=-1, keepdim=True)
        low, high = low.clamp_max_(0), high.clamp_min_(0)
        step = ((high - low) / self._greatest).clamp_min_(1e-30)
        levels = (x - low).mul_(1 / step).add_(0.5).floor_()
        # The operator has one scale for all rows: the greatest level there is / 255. It is 1 in every call if the
        # greatest number of each row has level 255. In a row of negative numbers that is 0, which is not in the row, so
        # there levels are counted from 255 down.
        negative = high == 0
        any_negative = bool(negative.any())
        if any_negative:
            levels = torch.where(negative, self._greatest - levels, levels)
        packed = self._few_rows if fbgemm_pays(levels.numel() // self._width * self._size) else self._many_rows
        sums: Tensor = torch.ops.quantized.linear_dynamic(levels, packed, self._seven_bits)
        if any_negative:
            sums = torch.where(negative, self._greatest * self._sums - sums, sums)
        result = sums.mul_(step).mul_(self._scale).add_(low * self._total)
        return result if self._bias is None else result.add_(self._bias)


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
