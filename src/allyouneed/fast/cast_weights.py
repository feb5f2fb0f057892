"""The weights of a model in the dtype of the products, all cast together once in each update.

Linear maps that are applied to the same rows are adjacent, so that they are one product. A small model has a hundred
weights and biases: to cast each of them, join some, and cast every gradient back would take as many operations as the
model itself.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..nn import FeedForward, MultiHeadAttention, Transformer

Weights = dict[nn.Module, tuple[Tensor, Tensor]]  # weight and bias of a product, by the first of its linear maps


def cast_weights(model: Transformer, dtype: torch.dtype) -> Weights:
    """Cast the weight and the bias of every linear map inside the layers to `dtype`.

    Gradients still reach the parameters of `model`.
    """
    products = list(_products(model))
    groups = [[getattr(linear, name) for linear in maps] for maps in products for name in ("weight", "bias")]
    tensors = _Cast.apply(dtype, [len(group) for group in groups], *chain(*groups))  # type: ignore[no-untyped-call]
    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    return {maps[0]: pair for maps, pair in zip(products, pairs, strict=True)}


def _products(model: Transformer) -> Iterator[Sequence[nn.Module]]:
    """Yield the linear maps inside the layers, grouped by the rows that they are applied to."""
    for name, part in (*model.encoder.named_modules(), *model.decoder.named_modules()):
        if name.endswith("cross_attention"):
            assert isinstance(part, MultiHeadAttention)
            yield from ([part.query], [part.key, part.value], [part.output])
        elif isinstance(part, MultiHeadAttention):
            yield from ([part.query, part.key, part.value], [part.output])
        elif isinstance(part, FeedForward):
            yield from ([part.inner], [part.outer])


class _Cast(torch.autograd.Function):
    """Join each group of parameters, which only differ in their first axis, into one tensor."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, counts: list[int], *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.shapes = [parameter.shape for parameter in parameters]
        ctx.dtype = parameters[0].dtype
        flat = torch.cat([parameter.flatten() for parameter in parameters]).to(dtype)
        ends = list(accumulate(counts))
        groups = [parameters[end - count : end] for end, count in zip(ends, counts, strict=True)]
        parts = torch.split(flat, [sum(parameter.numel() for parameter in group) for group in groups])
        return tuple(part.view(-1, *group[0].shape[1:]) for part, group in zip(parts, groups, strict=True))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        flat = torch.cat([gradient.flatten() for gradient in gradients]).to(ctx.dtype)
        parts = torch.split(flat, [shape.numel() for shape in ctx.shapes])
        return None, None, *(part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))
