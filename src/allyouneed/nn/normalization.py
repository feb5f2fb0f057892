"""Layer normalization (§3.1; Ba et al., 2016)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..settings import require_whole


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, *, eps: float) -> Tensor:
    """Normalize each vector to mean 0 and variance 1 over the last axis, then apply gain and bias.

    The variance is the biased one (divided by D), and eps is added before the root. Shapes: (…, D),
    gain and bias (D,) → (…, D).
    """
    centered = x - x.mean(-1, keepdim=True)
    variance = centered.square().mean(-1, keepdim=True)
    return gain * centered / torch.sqrt(variance + eps) + bias


class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias, by PyTorch's fused kernel. Shapes: (…, D) → (…, D)."""

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)
