"""Dropout (§5.4): in training, set each number to 0 with probability p, and divide the others by 1 − p.

On a CPU, `torch.nn.Dropout` draws a random number for each number of its input, which takes longer than the rest of a
small layer. Here each draw of 64 bits decides for four numbers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config.settings import require_fraction
from ..errors import ConfigError
from .module import Module


class Dropout(Module):
    """Set each number to 0 with probability `p`, and divide the others by 1 − p.

    Outside training it returns its input. Refuses a `p` that rounds to 1 in 16 bits.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        require_fraction("dropout", p)
        if round(p * 2**16) == 2**16:
            raise ConfigError(f"dropout must be at most 1 - 2**-16, or nothing would be kept; got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape as `x`, which may have any shape."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        return x * keep_factors(torch.empty_like(x, requires_grad=False), self.p)


def keep_factors(out: Tensor, p: float) -> Tensor:
    """Fill `out` at random with factors: 0 with probability p, and 1 / (1 − p) otherwise.

    The factors are independent. The probability is rounded to a multiple of 2⁻¹⁶.
    """
    draws = torch.empty(-(-out.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: out.numel()].view(out.shape)
    return torch.ge(numbers, round(p * 2**16) - 2**15, out=out).mul_(1 / (1 - p))  # 1 or 0, then the factor
