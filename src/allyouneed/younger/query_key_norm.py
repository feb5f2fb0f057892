"""Query-key norm (Henry et al., 2020), an option: self-attention normalizes queries and keys in each head.

    q → g ⊙ q / √(mean of q² + ε),    k → h ⊙ k / √(mean of k² + ε)

The gains g and h are learned. This bounds the scores, whatever the weights of the linear maps. The paper's model does
not use query-key norm.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..nn import KVCache, MultiHeadAttention
from .rotary import RotaryAttention

EPS = 1e-5


class QueryKeyNormAttention(MultiHeadAttention):
    """Self-attention with query-key norm. All heads share the gains. The rest is as in `MultiHeadAttention`."""

    def __init__(self, *, heads: int, **sizes: Any) -> None:
        super().__init__(heads=heads, **sizes)
        width = self.query.out_features // heads
        self.query_gain = nn.Parameter(torch.ones(width))
        self.key_gain = nn.Parameter(torch.ones(width))

    def project(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KVCache | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Project as `MultiHeadAttention` does, then normalize. A cache keeps the keys before normalization."""
        queries, keys, values = super().project(query, key, value, cache)
        return _normalize(queries, self.query_gain), _normalize(keys, self.key_gain), values


class RotaryQueryKeyNormAttention(RotaryAttention, QueryKeyNormAttention):
    """Self-attention with query-key norm, followed by rotary positions."""


def _normalize(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, gain.shape, gain.to(x.dtype), EPS)
