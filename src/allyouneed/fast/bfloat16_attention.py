"""Multi-head attention and its gradient as one function of autograd: `bfloat16_forward.py` trains with it on a CPU.

`nn/attention.py` and the options in `younger/` are the definition. Query, key and value are one product, split into
heads once; the scores are batched products in float32, which for short sentences take half the time of the fused
kernel.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..nn import MultiHeadAttention
from ..younger.query_key_norm import EPS, QueryKeyNormAttention
from ..younger.rotary import RotaryAttention, rotate
from .bfloat16_linear import linear_of_rows, weight_gradients

REGISTER = 16  # float32 numbers in a register of AVX-512


def attend(
    part: MultiHeadAttention,
    y: Tensor,
    memory: Tensor,
    mask: Tensor,
    shape: tuple[int, int, int],
) -> Tensor:
    """Compute the attention `part` of the rows y to the rows of the memory.

    `mask` is an attention bias that broadcasts to (B, H, T, S), `shape` is B, T and S. Shapes, with rows of all
    sentences and of padding: y (R, D), memory (M, D) → (R, D).
    """
    maps = (part.query, part.key, part.value, part.output)
    tensors = [tensor for linear in maps for tensor in (linear.weight, linear.bias)]
    memory_or_none = None if memory is y else memory
    is_rotary = isinstance(part, RotaryAttention)
    if isinstance(part, QueryKeyNormAttention):
        tensors += [part.query_gain, part.key_gain]
    return _Attention.apply(  # type: ignore[no-any-return, no-untyped-call]
        y, memory_or_none, mask, part.heads, is_rotary, shape, *tensors
    )


class _Attention(torch.autograd.Function):
    """Multi-head attention of the rows y to the rows of the memory, or to themselves if the memory is None.

    `shape` is B, T and S. `maps` are weight and bias of query, key, value and output, then the gains of query-key norm.
    Scores, weights and their products with the values are float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        memory: Tensor | None,
        mask: Tensor,
        heads: int,
        is_rotary: bool,
        shape: tuple[int, int, int],
        *maps: Tensor,
    ) -> Tensor:
        ctx.heads = heads
        ctx.is_rotary = is_rotary
        ctx.shape = shape
        sentences, length, memory_length = shape
        if memory is None:
            (query, key, value), weight = _project(y, maps[:6], heads, sentences, length)
            weights_of_maps = [weight]
        else:
            (query,), weight = _project(y, maps[:2], heads, sentences, length)
            (key, value), memory_weight = _project(memory, maps[2:6], heads, sentences, memory_length)
            weights_of_maps = [weight, memory, memory_weight]
        ctx.has_gains = len(maps) > 8
        if ctx.has_gains:
            (query, *ctx.query_norm), (key, *ctx.key_norm) = _normalize(query, maps[8]), _normalize(key, maps[9])
        if is_rotary:
            query = rotate(query)
            key = rotate(key)
        ctx.factor = 1 / math.sqrt(query.size(-1))
        scores = torch.bmm(query, key.mT).view(sentences, heads, length, memory_length)  # (B·H, T, S) → (B, H, T, S)
        weights = _softmax(torch.add(mask, scores, alpha=ctx.factor)).flatten(0, 1)
        attended = _join([torch.bmm(weights, value)], heads, like=y)  # (B·H, T, K) → (R, H·K)
        output = maps[6].to(y.dtype)
        ctx.save_for_backward(query, key, value, weights, attended, output, y, *weights_of_maps)
        return linear_of_rows(attended, output, maps[7])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, attended, output, y, weight, *of_memory = ctx.saved_tensors
        sentences, length, _ = ctx.shape
        grad_maps = weight_gradients(grad_output, attended)
        (grad_attended,) = _split(grad_output @ output, 1, ctx.heads, sentences, length)
        grad_value = torch.bmm(weights.mT, grad_attended)
        grad_scores = _softmax_backward(torch.bmm(grad_attended, value.mT), weights)
        grad_scores.mul_(ctx.factor)
        grad_query = torch.bmm(grad_scores, key)
        grad_key = torch.bmm(grad_scores.mT, query)
        if ctx.is_rotary:
            grad_query = rotate(grad_query, turn=-1)
            grad_key = rotate(grad_key, turn=-1)
        grad_gains = []
        if ctx.has_gains:
            grad_query, grad_query_gain = _normalize_backward(grad_query, *ctx.query_norm)
            grad_key, grad_key_gain = _normalize_backward(grad_key, *ctx.key_norm)
            grad_gains = [grad_query_gain, grad_key_gain]
        others = (None, None, None, None)
        if not of_memory:
            grad_all = _join([grad_query, grad_key, grad_value], ctx.heads, like=y)
            tensors = _alternating(weight_gradients(grad_all, y), 3)
            return grad_all @ weight, None, *others, *tensors, *grad_maps, *grad_gains
        memory, memory_weight = of_memory
        grad_queries = _join([grad_query], ctx.heads, like=y)
        grad_both = _join([grad_key, grad_value], ctx.heads, like=memory)
        tensors = [*weight_gradients(grad_queries, y), *_alternating(weight_gradients(grad_both, memory), 2)]
        return grad_queries @ weight, grad_both @ memory_weight, *others, *tensors, *grad_maps


def _softmax(scores: Tensor) -> Tensor:
    """Compute the softmax of every row; PyTorch computes rows shorter than a register faster as columns."""
    return scores.softmax(-1) if scores.size(-1) >= REGISTER else scores.mT.softmax(-2).mT


def _softmax_backward(gradient: Tensor, weights: Tensor) -> Tensor:
    if weights.size(-1) >= REGISTER:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    return torch._softmax_backward_data(gradient.mT, weights.mT, -2, weights.dtype).mT


def _normalize(x: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scale vectors to a mean square of 1, times the gain; also return the tensors for the backward pass."""
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    normalized = x * scale
    return normalized * gain, normalized, scale, gain


def _normalize_backward(gradient: Tensor, normalized: Tensor, scale: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gradients of x and of the gain."""
    product = gradient * normalized
    along = (product @ gain)[..., None] / gain.numel()
    return (gradient * gain - normalized * along) * scale, product.sum((0, 1))


def _project(rows: Tensor, maps: tuple[Tensor, ...], heads: int, sentences: int, length: int) -> tuple[Tensor, Tensor]:
    """Compute several linear maps of the same rows as one product, split into heads; also return its weight."""
    weight, bias = (torch.cat([one.to(rows.dtype) for one in both]) for both in (maps[::2], maps[1::2]))
    return _split(linear_of_rows(rows, weight, bias), len(maps) // 2, heads, sentences, length), weight


def _split(rows: Tensor, maps: int, heads: int, sentences: int, length: int) -> Tensor:
    """Split rows into heads, in float32: (R, maps·H·K) → (maps, B·H, L, K)."""
    split = rows[: sentences * length].view(sentences, length, maps, heads, -1).permute(2, 0, 3, 1, 4)
    return split.to(torch.float32, memory_format=torch.contiguous_format).flatten(1, 2)


def _join(maps: list[Tensor], heads: int, *, like: Tensor) -> Tensor:
    """Join several (B·H, L, K) to (R, maps·H·K), with as many rows as `like` and in its dtype."""
    both, length, width = maps[0].shape
    rows = like.new_empty(len(like), len(maps) * heads * width)
    rows[both // heads * length :] = 0
    parts = rows[: both // heads * length].view(-1, length, len(maps), heads, width)
    for i, split in enumerate(maps):
        parts[:, :, i] = split.view(-1, heads, length, width).transpose(1, 2)
    return rows


def _alternating(weight_and_bias: tuple[Tensor, Tensor], count: int) -> list[Tensor]:
    """List the gradients of several maps in a row: weight, bias, weight, bias, …"""
    return [tensor for pair in zip(*(both.chunk(count) for both in weight_and_bias), strict=True) for tensor in pair]
