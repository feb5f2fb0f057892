"""A linear map whose weights are integers from −127 to 127, with a scale for each output.

The inputs are quantized too, each row by itself to 256 levels between its least and its greatest number (0 among
them), or on a processor without VNNI to 128. So the products are of integers: four times as many fit in a register,
and a quarter of the memory is read. Sums of integers are exact, so a row gives the same result in any batch, whichever
kernel computes it.

This file alone knows PyTorch's quantized operators, which PyTorch will remove one day: `supports_int8` finds out by
trying them. docs/measured/decoding-speed.md says what could replace them.
"""

import threading
import warnings
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from ..device import has_vnni
from ..errors import ConfigError
from .fastest_way import FastestWay


def supports_int8(device: torch.device) -> bool:
    """Whether PyTorch's quantized operators are there and work: on x86 processors, as long as PyTorch has them."""
    return device.type == "cpu" and _operators_work()


@lru_cache(1)
def _operators_work() -> bool:
    """Try them once, by both engines, on a product of which the result is known."""
    levels, weight = torch.tensor([[0.0, 3.0, 127.0]]), torch.tensor([[1, -2, 3], [0, 127, -127]], dtype=torch.int8)
    try:
        results = [
            torch.ops.quantized.linear_dynamic(levels, _packed(weight, engine), True) for engine in ("fbgemm", "onednn")
        ]
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    return all(result.tolist() == [[375.0, -15748.0]] for result in results)


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (out, in) → int8 of the same shape and scales (out,), so that weight ≈ scale · int8."""
    scale = weight.abs().amax(1).clamp_(min=1e-12) / 127
    return (weight / scale[:, None]).round_().to(torch.int8), scale


def greatest_level() -> int:
    """The level of the greatest number of a row of inputs.

    Without VNNI two products are added in 16 bits, which they can overflow unless inputs have 7 bits.
    """
    return 255 if has_vnni() else 127


class Int8Linear:
    """`F.linear(x, weight, bias)` of quantized weights and inputs. Shapes: (…, in) → (…, out), float32.

    The result of a row does not depend on the other rows of a call. Refuses a device without int8 operators.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if not supports_int8(weight.device):
            raise ConfigError(
                f'precision "int8" needs an x86 processor and the quantized operators of PyTorch; got {weight.device} '
                f'and torch {torch.__version__}, where they do not work; use "float32" or compiled=True'
            )
        weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._shape = tuple(weight.shape)
        self._greatest = greatest_level()
        self._seven_bits = self._greatest < 255
        integers, self._scale = quantize(weight)
        self._sums = integers.sum(1, dtype=torch.float32)
        self._total = self._scale * self._sums
        self._fbgemm = _packed(integers, "fbgemm")
        self._onednn = self._fbgemm if self._seven_bits else _packed(integers, "onednn")

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
        rows = levels.numel() // self._shape[1]
        sums = _sum_products((*self._shape, rows.bit_length()), levels, self._fbgemm, self._onednn, self._seven_bits)
        if any_negative:
            sums = torch.where(negative, self._greatest * self._sums - sums, sums)
        result = sums.mul_(step).mul_(self._scale).add_(low * self._total)
        return result if self._bias is None else result.add_(self._bias)


def _sum_by_fbgemm(levels: Tensor, fbgemm: Any, _: Any, seven_bits: bool) -> Tensor:
    return cast(Tensor, torch.ops.quantized.linear_dynamic(levels, fbgemm, seven_bits))


def _sum_by_onednn(levels: Tensor, _: Any, onednn: Any, seven_bits: bool) -> Tensor:
    return cast(Tensor, torch.ops.quantized.linear_dynamic(levels, onednn, seven_bits))


_sum_products = FastestWay(_sum_by_fbgemm, _sum_by_onednn)  # both exact, so equal to the bit

_packing = threading.Lock()  # the engine is chosen for the whole process, and so are filters of warnings


def _packed(numbers: Tensor, engine: str) -> Any:
    with _packing, warnings.catch_warnings():
        chosen = torch.backends.quantized.engine
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor")  # see above
        torch.backends.quantized.engine = engine
        try:
            # Scales of 1: what comes out are whole numbers, and both engines agree on these to the bit.
            ones, zeros = torch.ones(len(numbers), dtype=torch.float64), torch.zeros(len(numbers), dtype=torch.int64)
            tensor = torch._make_per_channel_quantized_tensor(numbers, ones, zeros, 0)
            return torch.ops.quantized.linear_prepack(tensor, None)
        finally:
            torch.backends.quantized.engine = chosen
