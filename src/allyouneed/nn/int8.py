"""A linear map whose weights are whole numbers from −127 to 127, and a scale for each output.

The vectors that go in are rounded too, to 256 steps between their least and greatest number, so the
products are of whole numbers: four times as many fit in a register, and a quarter of the memory is
read. `rounded` is the definition of what becomes of the weights.

This file alone knows PyTorch's quantized operators. In torch 2.13 they are the quickest of all that
it has at the sizes of a decoder (docs/decoding-speed.md has the others), since one call rounds,
multiplies and scales; but the tensors they take are deprecated, and one day this file has to change.
"""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import ConfigError

LITTLE = 8_500_000  # multiplications; up to here FBGEMM is quicker than oneDNN
SMALL, FEW = 100_000, 8  # weights and rows; up to here the product takes less time than the rounding for it


def can_int8(device: torch.device) -> bool:
    """Whether there are int8 operators here: on x86 processors."""
    return device.type == "cpu" and {"fbgemm", "onednn"} <= set(torch.backends.quantized.supported_engines)


def rounded(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (out, in) → int8 of the same shape and scales (out,), so that weight ≈ scale · int8."""
    scale = weight.abs().amax(1).clamp_(min=1e-12) / 127
    return (weight / scale[:, None]).round_().to(torch.int8), scale


class Int8Map:
    """`F.linear(x, weight, bias)`, nearly. Shapes: (…, in) → (…, out), float32.

    The rows of one call share their steps, so what one becomes depends a little on the others. Refuses
    a device without int8 operators.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if not can_int8(weight.device):
            raise ConfigError(
                f'precision "int8" needs an x86 processor; got {weight.device} with '
                f'{", ".join(torch.backends.quantized.supported_engines)}; use "float32"'
            )
        weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._size, self._width = weight.numel(), weight.size(1)
        self._small = weight if self._size <= SMALL else None
        # Without VNNI two products can overflow the 16 bits they are added in, unless vectors have 7 bits.
        self._seven_bits = not torch.cpu._is_vnni_supported()
        self._few = self._packed(weight, "fbgemm")
        self._many = self._packed(weight, "fbgemm" if self._seven_bits else "onednn")

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.numel() // self._width
        if self._small is not None and rows <= FEW:
            return F.linear(x, self._small, self._bias)
        packed = self._few if rows * self._size <= LITTLE else self._many
        return torch.ops.quantized.linear_dynamic(x, packed, self._seven_bits)  # type: ignore[no-any-return]

    def _packed(self, weight: Tensor, engine: str) -> Any:
        numbers, scale = rounded(weight)
        chosen = torch.backends.quantized.engine
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")  # see above
            torch.backends.quantized.engine = engine
            try:
                tensor = torch._make_per_channel_quantized_tensor(
                    numbers, scale.double(), torch.zeros(len(scale), dtype=torch.int64), 0
                )
                return torch.ops.quantized.linear_prepack(tensor, self._bias)
            finally:
                torch.backends.quantized.engine = chosen
