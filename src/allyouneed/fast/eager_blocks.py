"""The blocks of `EagerEngine`: encoder and decoder of Figure 1 from fewer operations than the modules of `nn/`."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..nn.attention import MultiHeadAttention
from ..nn.decoder import DecoderBlock
from ..nn.encoder import EncoderBlock
from ..nn.feedforward import FeedForward
from ..nn.normalization import LayerNorm
from ..nn.residual import Residual
from .adjustment import adjust_heads, stack_gains
from .kv_cache import KVCache, split_heads

LinearMap = Callable[[Tensor], Tensor]  # (…, in) → (…, out)
MakeLinear = Callable[[Tensor, Tensor | None], LinearMap]  # weight (out, in) and bias (out,)


class FloatLinear:
    """A linear map in the dtype of its weights."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def join_maps(*maps: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight and bias of one linear map in place of several of the same vector: their outputs side by side."""
    if len(maps) == 1:
        return maps[0].weight, maps[0].bias
    return torch.cat([part.weight for part in maps]), torch.cat([part.bias for part in maps])


class EagerNorm:
    """Layer norm computed in `dtype`; anything else that a stack ends in is the identity."""

    def __init__(self, norm: nn.Module, dtype: torch.dtype) -> None:
        self.norm = norm if isinstance(norm, LayerNorm) else None
        if self.norm is not None:
            self.shape, self.eps = self.norm.gain.shape, self.norm.eps
            self.gain, self.bias = self.norm.gain.detach().to(dtype), self.norm.bias.detach().to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        if self.norm is None:
            return x
        return torch.layer_norm(x.to(self.gain.dtype), self.shape, self.gain, self.bias, self.eps).to(x.dtype)


class _Residual:
    """Add & norm: see residual.py."""

    def __init__(self, residual: Residual, dtype: torch.dtype) -> None:
        self.norm_first, self.norm = residual.norm_first, EagerNorm(residual.norm, dtype)

    def pre_norm(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.norm_first else x

    def add_and_norm(self, x: Tensor, more: Tensor) -> Tensor:
        more.add_(x)
        return more if self.norm_first else self.norm(more)


class _FeedForward:
    def __init__(self, feed_forward: FeedForward, residual: Residual, make: MakeLinear, dtype: torch.dtype) -> None:
        self.inner, self.outer = make(*join_maps(feed_forward.inner)), make(*join_maps(feed_forward.outer))
        self.residual, self.activation, self.dtype = _Residual(residual, dtype), feed_forward.activation, dtype

    def __call__(self, x: Tensor) -> Tensor:
        return self.residual.add_and_norm(x, self.outer(self.activate(self.inner(self.residual.pre_norm(x)))))

    def activate(self, x: Tensor) -> Tensor:
        if self.activation is F.relu:
            return x.relu_()
        return self.activation(x.to(self.dtype)).to(x.dtype)


class _SelfAttention:
    """Self-attention with one product for queries, keys and values, and its residual connection and norm."""

    def __init__(self, attention: MultiHeadAttention, residual: Residual, make: MakeLinear, dtype: torch.dtype) -> None:
        self.heads, self.residual, self.dtype = attention.heads, _Residual(residual, dtype), dtype
        self.qkv = make(*join_maps(attention.query, attention.key, attention.value))
        self.output = make(*join_maps(attention.output))
        self.gains = stack_gains(attention).to(dtype)
        self.width = attention.key.out_features
        self.kv_width = self.width + attention.value.out_features

    def project_qkv(self, x: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Queries, keys and values side by side, and the keys and values alone, (B, L, H·K + H·Kv)."""
        qkv = self.qkv(self.residual.pre_norm(x))
        adjust_heads(qkv[..., : 2 * self.width], self.heads, self.gains, rotation)
        return qkv, qkv[..., self.width :]

    def empty_cache(self, x: Tensor) -> KVCache:
        """A cache of no tokens for the sentences of `x`."""
        tokens = x.new_empty(x.size(0), 0, self.kv_width, dtype=self.dtype)
        return KVCache(tokens, 0, heads=self.heads, width=self.width)


def _cached_attention(query: Tensor, cache: KVCache, mask: Tensor | None) -> Tensor:
    """Equation 1 over a KV cache, in its dtype. Shapes: query (B, T, H·K …), mask (B, 1, T, L) → (B, T, H·Kv)."""
    queries = split_heads(query[..., : cache.width].to(cache.tokens.dtype), cache.heads)
    keys, values = cache.keys.narrow(2, 0, cache.used), cache.values.narrow(2, 0, cache.used)
    attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return attended.transpose(1, 2).flatten(2).to(query.dtype)


class EagerEncoderBlock:
    """A block of the encoder. Shapes: (B, S, D) in and out."""

    def __init__(self, block: EncoderBlock, make: MakeLinear, dtype: torch.dtype) -> None:
        self.attention = _SelfAttention(block.attention, block.attention_residual, make, dtype)
        self.feed_forward = _FeedForward(block.feed_forward, block.feed_forward_residual, make, dtype)

    def __call__(self, x: Tensor, padding: Tensor | None, rotation: Tensor | None) -> Tensor:
        attention = self.attention
        query, keys_and_values = attention.project_qkv(x, rotation)
        tokens = keys_and_values.to(attention.dtype)
        cache = KVCache(tokens, tokens.size(1), heads=attention.heads, width=attention.width)
        x = attention.residual.add_and_norm(x, attention.output(_cached_attention(query, cache, padding)))
        return self.feed_forward(x)


class EagerDecoderBlock:
    """A block of the decoder, whose N/B hypotheses of a sentence stand as if they were positions, (B, N/B, D)."""

    def __init__(self, block: DecoderBlock, make: MakeLinear, dtype: torch.dtype) -> None:
        cross, self.dtype = block.cross_attention, dtype
        self.self_attention = _SelfAttention(block.self_attention, block.self_attention_residual, make, dtype)
        self.heads, self.width = cross.heads, cross.key.out_features
        self.query, self.output = make(*join_maps(cross.query)), make(*join_maps(cross.output))
        self.keys_and_values = make(*join_maps(cross.key, cross.value))
        self.cross_attention_residual = _Residual(block.cross_attention_residual, dtype)
        self.feed_forward = _FeedForward(block.feed_forward, block.feed_forward_residual, make, dtype)

    def project_kv(self, memory: Tensor) -> KVCache:
        """Keys and values of the memory (B, S, D), projected once for all steps."""
        tokens = self.keys_and_values(memory)
        return KVCache(tokens.to(self.dtype), memory.size(1), heads=self.heads, width=self.width)

    def __call__(
        self,
        x: Tensor,
        cache: KVCache,
        cached: int,
        mask: Tensor | None,
        memory: KVCache,
        padding: Tensor | None,
        rotation: Tensor | None,
    ) -> tuple[Tensor, KVCache]:
        attention, residual = self.self_attention, self.cross_attention_residual
        query, keys_and_values = attention.project_qkv(x, rotation)
        cache = cache.append(keys_and_values, after=cached)
        x = attention.residual.add_and_norm(x, attention.output(_cached_attention(query, cache, mask)))
        query = self.query(residual.pre_norm(x))
        x = residual.add_and_norm(x, self.output(_cached_attention(query, memory, padding)))
        return self.feed_forward(x), cache
