"""Layer normalization (§3.1; Ba et al., 2016)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config.settings import require_whole
from .module import Module


class LayerNorm(Module):
    """Give each vector mean 0 and variance 1, then a learned gain and bias: g ⊙ (x − mean) / √(variance + ε) + b.

    The variance is the biased estimate, with divisor D. Shapes: (…, D) → (…, D).
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)
