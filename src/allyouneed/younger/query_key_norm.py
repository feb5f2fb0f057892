"""Query-key norm (Henry et al., 2020), an option: in self-attention queries and keys are normalized in each head.

    q → g ⊙ q / √(mean of q² + ε),    k → h ⊙ k / √(mean of k² + ε)

g and h are learned. The scores are then bounded, whatever the weights of the linear maps. The paper's model does not
use it.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..nn import MultiHeadAttention
from .rotary import RotaryAttention

EPS = 1e-5


class QueryKeyNormAttention(MultiHeadAttention):
    """Self-attention with query-key norm, whose gains all heads share; otherwise as `MultiHeadAttention`."""

    def __init__(self, *, heads: int, **sizes: Any) -> None:
        super().__init__(heads=heads, **sizes)
        width = self.query.out_features // heads
        self.query_gain = nn.Parameter(torch.ones(width))
        self.key_gain = nn.Parameter(torch.ones(width))

    def project_queries(self, query: Tensor, *, start: int) -> Tensor:
        """As in `MultiHeadAttention`, then normalized."""
        return _normalize(super().project_queries(query, start=start), self.query_gain)

    def project_kv(self, key: Tensor, value: Tensor, *, start: int = 0) -> tuple[Tensor, Tensor]:
        """As in `MultiHeadAttention`, with normalized keys."""
        keys, values = super().project_kv(key, value, start=start)
        return _normalize(keys, self.key_gain), values


class RotaryQueryKeyNormAttention(RotaryAttention, QueryKeyNormAttention):
    """Self-attention with query-key norm, then rotary positions."""


def _normalize(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, gain.shape, gain.to(x.dtype), EPS)
