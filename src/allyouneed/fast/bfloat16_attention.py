"""Multi-head attention and its gradient as one autograd function, for training on a CPU (`bfloat16_forward.py`).

`nn/attention.py` and the options in `younger/` define the result. Query, key and value are computed as one product and
split into heads once. The scores are batched products in float32, which for short sentences take half the time of the
fused kernel.
"""

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..nn import MultiHeadAttention
from ..younger.query_key_norm import EPS, QueryKeyNormAttention
from ..younger.rotary import RotaryAttention, turns
from .bfloat16_linear import linear_of_rows, weight_gradients
from .cast_weights import Weights

REGISTER = 16  # float32 numbers in an AVX-512 register


def attend(
    part: MultiHeadAttention,
    weights: Weights,
    y: Tensor,
    memory: Tensor,
    mask: Tensor,
    shape: tuple[int, int, int],
) -> Tensor:
    """Compute the attention `part` from the rows `y` to the rows `memory`, with the part's cast `weights`.

    `mask` is an attention bias that broadcasts to (B, H, T, S), and `shape` is (B, T, S). The rows of all sentences lie
    one after another, followed by rows of padding. Shapes: y (R, D), memory (M, D) → (R, D).
    """
    memory_or_none = None if memory is y else memory
    maps = [part.query, part.output] if memory is y else [part.query, part.key, part.output]
    tensors = [tensor for linear in maps for tensor in weights[linear]]
    is_rotary = isinstance(part, RotaryAttention)
    if isinstance(part, QueryKeyNormAttention):
        tensors += [part.query_gain, part.key_gain]
    return _Attention.apply(  # type: ignore[no-any-return, no-untyped-call]
        y, memory_or_none, mask, part.heads, is_rotary, shape, *tensors
    )


class _Attention(torch.autograd.Function):
    """Multi-head attention of the rows `y` to the rows of the memory, or to themselves if the memory is None.

    `shape` is (B, T, S). `maps` has the weight and the bias of each product. The products are: without a memory, query,
    key and value together; with a memory, the query, then key and value together; last, the output. The final two
    entries are the gains of query-key norm, if there is any. Scores, weights and their products with the values are
    float32.
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
        ctx.norm = None
        weight, bias, *others = maps
        if memory is None:
            output, output_bias, *gains = others
            split = _split(linear_of_rows(y, weight, bias), 3, heads, sentences, length)
            both, value = split[:2], split[2]
            if gains:
                both, *ctx.norm = _normalize(both, torch.stack(gains)[:, None, None])
            query, key = _rotate(both) if is_rotary else both
            of_memory = []
        else:
            memory_weight, memory_bias, output, output_bias = others
            (query,) = _split(linear_of_rows(y, weight, bias), 1, heads, sentences, length)
            key, value = _split(linear_of_rows(memory, memory_weight, memory_bias), 2, heads, sentences, memory_length)
            of_memory = [memory, memory_weight]
        ctx.factor = 1 / math.sqrt(query.size(-1))
        scores = torch.bmm(query, key.mT).view(sentences, heads, length, memory_length)  # (B·H, T, S) → (B, H, T, S)
        weights = _softmax(torch.add(mask, scores, alpha=ctx.factor)).flatten(0, 1)
        attended = _join([torch.bmm(weights, value)], heads, like=y)  # (B·H, T, K) → (R, H·K)
        ctx.save_for_backward(query, key, value, weights, attended, output, y, weight, *of_memory)
        return linear_of_rows(attended, output, output_bias)

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
        others = (None, None, None, None)
        if not of_memory:
            both = torch.stack((torch.bmm(grad_scores, key), torch.bmm(grad_scores.mT, query)))
            if ctx.is_rotary:
                both = _rotate(both, turn=-1)
            grad_gains: tuple[Tensor, ...] = ()
            if ctx.norm:
                both, grad_gains = _normalize_backward(both, *ctx.norm)
            grad_all = _join([*both, grad_value], ctx.heads, like=y)
            return grad_all @ weight, None, *others, *weight_gradients(grad_all, y), *grad_maps, *grad_gains
        grad_query = torch.bmm(grad_scores, key)
        grad_key = torch.bmm(grad_scores.mT, query)
        memory, memory_weight = of_memory
        grad_queries = _join([grad_query], ctx.heads, like=y)
        grad_both = _join([grad_key, grad_value], ctx.heads, like=memory)
        tensors = (*weight_gradients(grad_queries, y), *weight_gradients(grad_both, memory), *grad_maps)
        return grad_queries @ weight, grad_both @ memory_weight, *others, *tensors


def _softmax(scores: Tensor) -> Tensor:
    """Compute the softmax of every row. Short rows are computed in place, in the memory of `scores`.

    PyTorch vectorizes within a row. If rows are shorter than a register, its kernel takes 4 times as long as these
    lines.
    """
    if scores.size(-1) >= REGISTER:
        return scores.softmax(-1)
    exponentials = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return exponentials.div_(_sum_of_rows(exponentials))


def _softmax_backward(gradient: Tensor, weights: Tensor) -> Tensor:
    if weights.size(-1) >= REGISTER:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    return gradient.sub_(_sum_of_rows(gradient * weights)).mul_(weights)


def _sum_of_rows(x: Tensor) -> Tensor:
    """Sum every row, as a product with ones, which is faster than `sum` for short rows: (…, K) → (…, 1)."""
    return (x @ x.new_ones(x.size(-1)))[..., None]


def _normalize(x: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scale vectors to a mean square of 1, times the gain. Also returns the tensors for the backward pass."""
    scale = (_sum_of_rows(x.square()) / x.size(-1)).add_(EPS).rsqrt_()
    normalized = x * scale
    return normalized * gain, normalized, scale, gain


def _normalize_backward(
    gradient: Tensor, normalized: Tensor, scale: Tensor, gain: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute the gradients of x and of the gain."""
    grad_gains = (gradient * normalized).sum((1, 2)).unbind()
    gradient = gradient * gain
    along = _sum_of_rows(gradient * normalized) / gain.size(-1)
    return gradient.addcmul_(normalized, along, value=-1).mul_(scale), grad_gains


def _rotate(x: Tensor, *, turn: float = 1.0) -> Tensor:
    """Rotate like `younger.rotary.rotate`, from position 0 on. To swap partners by a product takes half the time."""
    cosines, sines = (table[: x.size(-2)] for table in turns(x.size(-2), x.size(-1), x.device))
    return (x @ _partners(x.size(-1))).mul_(turn * sines).addcmul_(x, cosines)


@lru_cache(maxsize=16)
def _partners(width: int) -> Tensor:
    """Build the permutation matrix (K, K) that swaps each number of a vector with its partner."""
    half = width // 2
    order = [*range(half, 2 * half), *range(half), *range(2 * half, width)]
    return torch.eye(width)[order].mT.contiguous()


def _split(rows: Tensor, maps: int, heads: int, sentences: int, length: int) -> Tensor:
    """Split the rows into maps and heads, in float32: (R, maps·H·K) → (maps, B·H, L, K)."""
    split = rows[: sentences * length].view(sentences, length, maps, heads, -1).permute(2, 0, 3, 1, 4)
    return split.to(torch.float32, memory_format=torch.contiguous_format).flatten(1, 2)


def _join(maps: list[Tensor], heads: int, *, like: Tensor) -> Tensor:
    """Join several (B·H, L, K) into (R, maps·H·K). R and the dtype are those of `like`."""
    both, length, width = maps[0].shape
    rows = like.new_empty(len(like), len(maps) * heads * width)
    rows[both // heads * length :] = 0
    parts = rows[: both // heads * length].view(-1, length, len(maps), heads, width)
    for i, split in enumerate(maps):
        parts[:, :, i] = split.view(-1, heads, length, width).transpose(1, 2)
    return rows
