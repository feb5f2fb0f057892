"""Attention (§3.2): scaled dot-product attention, equation 1, and multi-head attention."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config.settings import require_fraction, require_whole
from ..errors import ConfigError
from .module import Linear, Module


def attention_weights(query: Tensor, key: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Compute how strongly each query attends to each key: softmax(QKᵀ / √d_k).

    This is equation 1 (§3.2.1) before the product with V.

    Shapes:
        query     (B, H, T, K)
        key       (B, H, S, K)
        attn_mask broadcasts to (B, H, T, S); bool, True = may attend
        returns   (B, H, T, S); every row sums to 1

    If every key is masked, the query attends to all keys equally.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *, dropout: float = 0.0
) -> Tensor:
    """Compute Attention(Q, K, V) = softmax(QKᵀ / √d_k) V, equation 1, with `dropout` applied to the weights.

    The shapes are as in `attention_weights`. `value` has the shape (B, H, S, Kv), and the result (B, H, T, Kv).
    """
    return F.dropout(attention_weights(query, key, attn_mask), dropout) @ value


@dataclass(slots=True)
class KVCache:
    """The keys, (N, H, L, K), and values, (N, H, L, Kv), from earlier calls of one attention layer.

    `kept` is None before the first call. In self-attention each call appends the keys and values of the newest tokens.
    In cross-attention (`grows=False`) the first call projects the memory, and later calls reuse the result.
    """

    kept: tuple[Tensor, Tensor] | None = None
    grows: bool = True

    @property
    def length(self) -> int:
        """The number of positions in the cache."""
        return self.kept[0].size(2) if self.kept else 0

    def update(self, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all positions; call `project` to compute the new ones."""
        if self.kept is None:
            self.kept = project()
        elif self.grows:
            keys, values = project()
            self.kept = torch.cat((self.kept[0], keys), 2), torch.cat((self.kept[1], values), 2)
        return self.kept

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the cache, in this order. A row may be listed more than once."""
        if self.kept:
            keys, values = self.kept
            self.kept = keys[rows], values[rows]


class MultiHeadAttention(Module):
    """Several heads of attention in parallel, each with its own linear maps (§3.2.2).

    Shapes: query (B, T, D), key and value (B, S, D) → (B, T, D). `d_k` and `d_v`, the widths of keys and values in each
    head, are d_model / heads by default. `dropout` is applied to the attention weights, only in training. The four
    linear maps have biases, as in `torch.nn.MultiheadAttention`; the paper does not mention any.
    """

    attention: Callable[..., Tensor] = staticmethod(attention)  # `fast/` sets a faster one on an instance

    def __init__(
        self,
        *,
        d_model: int,
        heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        require_whole("heads", heads)
        require_fraction("dropout", dropout)
        if d_model % heads and None in (d_k, d_v):
            raise ConfigError(
                f"d_model must be a multiple of heads, or d_k and d_v be given; got d_model={d_model}, heads={heads}"
            )
        d_k, d_v = d_k or d_model // heads, d_v or d_model // heads
        self.heads, self.dropout = heads, dropout
        self.query = Linear(d_model, heads * d_k)
        self.key = Linear(d_model, heads * d_k)
        self.value = Linear(d_model, heads * d_v)
        self.output = Linear(heads * d_v, d_model)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Attend in every head, and combine the results.

        `attn_mask` broadcasts to (B, H, T, S), with True = may attend. With a `cache`, the S positions are the cached
        ones followed by the new ones.
        """
        queries, keys, values = self.project(query, key, value, cache)
        dropout = self.dropout if self.training else 0.0
        attended = self.attention(queries, keys, values, attn_mask, dropout=dropout)
        return self.output(attended.transpose(1, 2).flatten(2))  # (B, H, T, Kv) → (B, T, D)

    def project(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KVCache | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the Q, K and V of every head: (B, H, T, K), (B, H, S, K) and (B, H, S, Kv).

        In self-attention with a `cache`, the T queries are for the last T of the S positions.
        """

        def project_kv() -> tuple[Tensor, Tensor]:
            return self._split(self.key(key)), self._split(self.value(value))

        keys, values = cache.update(project_kv) if cache else project_kv()
        return self._split(self.query(query)), keys, values

    def weights(self, query: Tensor, key: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Compute the attention weights of every head, (B, H, T, S), for inspection."""
        queries, keys, _ = self.project(query, key, key)
        return attention_weights(queries, keys, attn_mask)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, x.size(-1) // self.heads).transpose(1, 2)  # (B, L, H·K) → (B, H, L, K)
