"""Attention (§3.2): scaled dot-product attention and multi-head attention.

`attention_weights` is equation 1 as the paper writes it. The model runs the same equation through
PyTorch's fused kernel, `attention`, which without dropout never holds all attention weights of a batch in memory.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import ConfigError
from ..settings import require_fraction, require_whole
from .packed import AttentionMask, PackedMask, fits_flash, flash_attention


def attention_weights(query: Tensor, key: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """How strongly each query attends to each key: softmax(QKᵀ / √d_k).

    §3.2.1, equation 1, before the product with V.

    Shapes:
        query     (B, H, T, K)
        key       (B, H, S, K)
        attn_mask broadcasts to (B, H, T, S); bool, True = may attend
        returns   (B, H, T, S); every row sums to 1

    A query with every key masked spreads its weight evenly.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: AttentionMask | None = None, *, dropout: float = 0.0
) -> Tensor:
    """`attention_weights(query, key, attn_mask) @ value`, by the fused kernel.

    Shapes as there; value (B, H, S, Kv), returns (B, H, T, Kv). `dropout` is applied to the weights. With a
    `PackedMask`, B is 1 and the tokens are those of several sentences.
    """
    if isinstance(attn_mask, PackedMask):
        if fits_flash(query, value, dropout):
            return flash_attention(query, key, value, attn_mask)
        padded = (attn_mask.queries.pad(query), attn_mask.keys.pad(key), attn_mask.keys.pad(value))
        return attn_mask.queries.pack(attention(*padded, attn_mask.padded(), dropout=dropout))
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        # On a CPU its backward pass in bfloat16 is 8 times slower than in float32 (torch 2.13).
        with torch.autocast("cpu", enabled=False):
            return attention(query.float(), key.float(), value.float(), attn_mask, dropout=dropout).bfloat16()
    bias = None if attn_mask is None else attention_bias(attn_mask, query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)


def attention_bias(attn_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The attention bias of a mask: added to the scores, it is 0 where True and very low where False."""
    # Half the lowest number: added to any score it makes its weight 0, and the sum does not overflow to −∞,
    # which would give NaN for a query with every key masked.
    low = torch.finfo(dtype).min / 2
    attn_mask = torch.atleast_2d(attn_mask)  # type: ignore[no-untyped-call]  # as the fused kernel needs it
    return torch.zeros(attn_mask.shape, dtype=dtype, device=attn_mask.device).masked_fill_(~attn_mask, low)


class MultiHeadAttention(nn.Module):
    """Attention in `heads` subspaces in parallel (§3.2.2).

    Shapes: query (B, T, D), key and value (B, S, D) → (B, T, D). `d_k` and `d_v`, the widths of a
    head, are d_model / heads by default. `dropout` is applied to the weights, in training only. The
    four linear maps have biases, as in `torch.nn.MultiheadAttention`; the paper prints none.
    """

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
        self.query = nn.Linear(d_model, heads * d_k)
        self.key = nn.Linear(d_model, heads * d_k)
        self.value = nn.Linear(d_model, heads * d_v)
        self.output = nn.Linear(heads * d_v, d_model)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: AttentionMask | None = None,
    ) -> Tensor:
        """`attn_mask` broadcasts to (B, H, T, S), True = may attend."""
        return self.attend(query, *self.project_kv(key, value), attn_mask)

    def project_kv(self, key: Tensor, value: Tensor, *, start: int = 0) -> tuple[Tensor, Tensor]:
        """Keys and values from position `start` on, split into heads: (B, S, D) twice → (B, H, S, K), (B, H, S, Kv)."""
        return self.adjust_keys(self._split(self.key(key)), start), self._split(self.value(value))

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, attn_mask: AttentionMask | None = None) -> Tensor:
        """Attend with queries (B, T, D) to the keys and values that `project_kv` returned → (B, T, D).

        The queries are those of the last T positions.
        """
        queries = self.project_queries(query, start=keys.size(2) - query.size(1))
        attended = attention(queries, keys, values, attn_mask, dropout=self.dropout if self.training else 0.0)
        return self.output(attended.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]  # (B, H, T, Kv) → (B, T, D)

    def weights(self, query: Tensor, key: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """The attention weights of every head, for inspection: (B, H, T, S)."""
        queries = self.project_queries(query, start=key.size(1) - query.size(1))
        return attention_weights(queries, self.adjust_keys(self._split(self.key(key)), 0), attn_mask)

    def project_queries(self, query: Tensor, *, start: int) -> Tensor:
        """Queries from position `start` on, split into heads: (B, T, D) → (B, H, T, K)."""
        return self.adjust_queries(self._split(self.query(query)), start)

    def adjust_queries(self, queries: Tensor, start: int) -> Tensor:
        """Changes queries before the scores are computed; here they stay as they are, as in the paper.

        Rotary positions and query-key norm override this. Shapes: (B, H, T, K), of the positions from `start` on → the
        same.
        """
        return queries

    def adjust_keys(self, keys: Tensor, start: int) -> Tensor:
        """The same of the keys, (B, H, S, K)."""
        return keys

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, x.size(-1) // self.heads).transpose(1, 2)  # (B, L, H·K) → (B, H, L, K)
