"""Layer normalization (§3.1; Ba et al., 2016)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..settings import require_whole


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, *, eps: float) -> Tensor:
    """Each vector at mean 0 and variance 1 over its last axis, then gain and bias.

    The variance is the biased one (divided by D), and eps stands inside the root. Shapes: (…, D),
    gain and bias (D,) → (…, D).
    """
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return gain * centred / torch.sqrt(variance + eps) + bias


class LayerNorm(nn.Module):
    """`normalize` with a learned gain and bias, by PyTorch's fused kernel. Shapes: (…, D) → (…, D)."""

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)
