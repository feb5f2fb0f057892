"""`Transformer.hidden_states` for training on a CPU, computed in fewer and larger operations: dense, but one file.

`nn/` is the definition, with which a test compares the values, the gradients and the random numbers of dropout. Here a
sublayer is one function of autograd with its gradient written out: query, key and value are one product; attention is
batched products, which for short sentences take half the time of the fused kernel; every tensor is cast to the dtype of
the products once; and a product adds its bias and applies the ReLU itself.

The vectors of a side are rows of one matrix, in bfloat16 with more rows of zeros up to a round number: oneDNN generates
machine code for every new shape, which takes longer than the product itself, and batches have hundreds of shapes.
"""

import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..nn import Decoder, Encoder, MultiHeadAttention, Residual, Transformer
from ..nn.attention import attention_bias
from ..nn.custom_parts import find_custom_part
from ..nn.dropout import keep_factors
from ..nn.feedforward import FeedForward
from ..nn.mask import causal_mask, padding_mask
from ..nn.query_key_norm import EPS, QueryKeyNormAttention
from ..nn.rotary import RotaryAttention, rotate
from .rounding import round_up

HAS_ONEDNN = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
REGISTER = 16  # float32 numbers in a register of AVX-512
LONGEST = 128  # tokens of a sentence: the attention weights of longer ones take too much memory

_supported: "WeakKeyDictionary[Transformer, bool]" = WeakKeyDictionary()


def hidden_states(model: Transformer, source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    """`model.hidden_states(source, target)` with products in `dtype`, in float32: (B, S), (B, T) → (B, T, D).

    A model, a device or a batch that this file has no way for goes through the model itself.
    """
    longest = max(source.size(1), target.size(1))
    if source.device.type != "cpu" or longest > LONGEST or not _is_supported(model):
        with torch.autocast(source.device.type, dtype=dtype, enabled=dtype != torch.float32):
            return model.hidden_states(source, target).float()
    source_vectors, target_vectors = _embed(model, source, target)
    x = _as_rows(model.source_position(source_vectors), dtype)
    memory_mask = attention_bias(padding_mask(source, model.config.pad_id), torch.float32)
    memory = _through_encoder(model.encoder, x, memory_mask, dtype)
    x = _as_rows(model.target_position(target_vectors), dtype)
    mask = attention_bias(causal_mask(target.size(1)), torch.float32)
    x = _through_decoder(model.decoder, x, memory, memory_mask, mask, dtype)
    return x[: target.numel()].view(*target.shape, -1)


def _is_supported(model: Transformer) -> bool:
    if model not in _supported:
        config = model.config
        _supported[model] = (
            (config.norm, config.activation, config.attention_dropout) == ("post", "relu", 0)
            and config.d_k == config.d_v
            and find_custom_part(model) is None
        )
    return _supported[model]


def _embed(model: Transformer, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The embeddings of both sides: of a table that they share in one lookup, which makes one gradient of its size."""
    if model.source_embedding is not model.target_embedding:
        return model.source_embedding(source), model.target_embedding(target)
    vectors = model.source_embedding(torch.cat((source.flatten(), target.flatten())))
    of_source, of_target = vectors.split((source.numel(), target.numel()))
    return of_source.view(*source.shape, -1), of_target.view(*target.shape, -1)


def _as_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, L, D) → (R, D), with zeros at the end in bfloat16."""
    rows = x.flatten(0, 1)
    return F.pad(rows, (0, 0, 0, round_up(len(rows)) - len(rows))) if dtype == torch.bfloat16 else rows


def _through_encoder(encoder: Encoder, x: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    y, shape, first = x.to(dtype), (mask.size(0), mask.size(-1), mask.size(-1)), None
    for layer in _blocks(encoder):
        attended, first = _attend(layer.attention, y, y, mask, shape, first)
        x, y = _add_and_norm(layer.attention_residual, x, attended, shape)
        x, y = _add_and_norm(layer.feed_forward_residual, x, _feed_forward(layer.feed_forward, y), shape)
    return y


def _through_decoder(
    decoder: Decoder, x: Tensor, memory: Tensor, memory_mask: Tensor, mask: Tensor, dtype: torch.dtype
) -> Tensor:
    y, sentences, length = x.to(dtype), memory_mask.size(0), len(mask)
    itself, across = (sentences, length, length), (sentences, length, memory_mask.size(-1))
    first = first_of_memory = None
    for layer in _blocks(decoder):
        attended, first = _attend(layer.self_attention, y, y, mask, itself, first)
        x, y = _add_and_norm(layer.self_attention_residual, x, attended, itself)
        attended, first_of_memory = _attend(layer.cross_attention, y, memory, memory_mask, across, first_of_memory)
        x, y = _add_and_norm(layer.cross_attention_residual, x, attended, across)
        x, y = _add_and_norm(layer.feed_forward_residual, x, _feed_forward(layer.feed_forward, y), itself)
    return x


def _blocks(stack: Encoder | Decoder) -> Iterable[Any]:
    return stack.layers


def _attend(
    part: MultiHeadAttention,
    y: Tensor,
    memory: Tensor,
    mask: Tensor,
    shape: tuple[int, int, int],
    first: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """What the attention gives, and the values of the first layer of its stack."""
    maps = (part.query, part.key, part.value, part.output)
    tensors = [tensor for linear in maps for tensor in (linear.weight, linear.bias)]
    memory_or_none = None if memory is y else memory
    is_rotary = isinstance(part, RotaryAttention)
    if isinstance(part, QueryKeyNormAttention):
        tensors += [part.query_gain, part.key_gain]
    share = None if part.value_residual is None else part.value_residual.share
    attended, values = _Attention.apply(  # type: ignore[no-untyped-call]
        y, memory_or_none, mask, first, share, part.heads, is_rotary, shape, *tensors
    )
    return attended, values if first is None else first


def _feed_forward(part: FeedForward, y: Tensor) -> Tensor:
    inner, outer = part.inner, part.outer
    return _FeedForward.apply(y, inner.weight, inner.bias, outer.weight, outer.bias)  # type: ignore[no-any-return, no-untyped-call]


def _add_and_norm(part: Residual, x: Tensor, z: Tensor, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """Norm(x + Dropout(z)) in float32, and in the dtype of z for the products of the next sublayer."""
    norm, p = part.norm, part.dropout.p if part.dropout.training else 0.0
    factors = None
    if p:
        count = shape[0] * shape[1]
        factors = torch.empty_like(z)
        keep_factors(factors[:count], p)
        factors[count:] = 0
    x, y = _AddAndNorm.apply(x, z, factors, norm.gain, norm.bias, norm.eps)  # type: ignore[no-untyped-call]
    return x, x if y is None else y


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, z: Tensor, factors: Tensor | None, gain: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor | None]:
        total = (z if factors is None else z * factors).to(x.dtype, copy=True).add_(x)
        normalized, mean, scale = torch.native_layer_norm(total, gain.shape, gain, bias, eps)
        ctx.save_for_backward(total, mean, scale, gain, bias, factors)
        ctx.dtype = z.dtype
        ctx.set_materialize_grads(False)
        return normalized, None if z.dtype == total.dtype else normalized.to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, for_exact: Tensor | None, for_cast: Tensor | None) -> tuple[Tensor | None, ...]:
        total, mean, scale, gain, bias, factors = ctx.saved_tensors
        if for_cast is None or for_exact is None:
            gradient = for_exact if for_cast is None else for_cast.float()
        else:
            gradient = for_cast.float().add_(for_exact)
        for_x, for_gain, for_bias = torch.ops.aten.native_layer_norm_backward(
            gradient, total, gain.shape, mean, scale, gain, bias, [True, True, True]
        )
        for_z = for_x.to(ctx.dtype)
        return for_x, for_z if factors is None else for_z * factors, None, for_gain, for_bias, None


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        w1, w2 = w1.to(y.dtype), w2.to(y.dtype)
        hidden = _linear(y, w1, b1, relu=True)
        ctx.save_for_backward(y, hidden, w1, w2)
        return _linear(hidden, w2, b2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, for_output: Tensor) -> tuple[Tensor, ...]:
        y, hidden, w1, w2 = ctx.saved_tensors
        for_w2, for_b2 = _weight_gradients(for_output, hidden)
        for_hidden = torch.ops.aten.threshold_backward(for_output @ w2, hidden, 0)
        for_w1, for_b1 = _weight_gradients(for_hidden, y)
        return for_hidden @ w1, for_w1, for_b1, for_w2, for_b2


class _Attention(torch.autograd.Function):
    """Multi-head attention of the rows y to those of the memory, or to themselves if that is None.

    `shape` is B, T and S. `maps` are weight and bias of query, key, value and output, then the gains of query-key norm.
    With a `share`, the values are mixed with the `first`. Scores, weights and their products with the values are
    float32. Returns the rows, and the values (B·H, S, K).
    """

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        memory: Tensor | None,
        mask: Tensor,
        first: Tensor | None,
        share: Tensor | None,
        heads: int,
        is_rotary: bool,
        shape: tuple[int, int, int],
        *maps: Tensor,
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.heads, ctx.is_rotary, ctx.shape = heads, is_rotary, shape
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
            query, key = rotate(query), rotate(key)
        ctx.mixes_values = first is not None and share is not None
        if first is not None and share is not None:
            difference = first - value
            value = value + share * difference
            weights_of_maps += [difference, share]
        ctx.factor = 1 / math.sqrt(query.size(-1))
        scores = torch.bmm(query, key.mT).view(sentences, heads, length, memory_length)  # (B·H, T, S) → (B, H, T, S)
        weights = _softmax(torch.add(mask, scores, alpha=ctx.factor)).flatten(0, 1)
        attended = _join([torch.bmm(weights, value)], heads, like=y)  # (B·H, T, K) → (R, H·K)
        output = maps[6].to(y.dtype)
        ctx.save_for_backward(query, key, value, weights, attended, output, y, *weights_of_maps)
        return _linear(attended, output, maps[7]), value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, for_output: Tensor, for_values: Tensor | None) -> tuple[Tensor | None, ...]:
        query, key, value, weights, attended, output, y, weight, *of_memory = ctx.saved_tensors
        sentences, length, _ = ctx.shape
        for_maps = _weight_gradients(for_output, attended)
        (for_attended,) = _split(for_output @ output, 1, ctx.heads, sentences, length)
        for_value = torch.bmm(weights.mT, for_attended)
        for_first = for_share = None
        if for_values is not None:
            for_value += for_values
        if ctx.mixes_values:
            *of_memory, difference, share = of_memory
            for_first, for_share = share * for_value, (for_value * difference).sum()[None]
            for_value -= for_first
        for_scores = _softmax_backward(torch.bmm(for_attended, value.mT), weights)
        for_scores.mul_(ctx.factor)
        for_query, for_key = torch.bmm(for_scores, key), torch.bmm(for_scores.mT, query)
        if ctx.is_rotary:
            for_query, for_key = rotate(for_query, turn=-1), rotate(for_key, turn=-1)
        for_gains = []
        if ctx.has_gains:
            for_query, for_query_gain = _normalize_backward(for_query, *ctx.query_norm)
            for_key, for_key_gain = _normalize_backward(for_key, *ctx.key_norm)
            for_gains = [for_query_gain, for_key_gain]
        others = (None, for_first, for_share, None, None, None)
        if not of_memory:
            for_all = _join([for_query, for_key, for_value], ctx.heads, like=y)
            tensors = _alternating(_weight_gradients(for_all, y), 3)
            return for_all @ weight, None, *others, *tensors, *for_maps, *for_gains
        memory, memory_weight = of_memory
        for_queries = _join([for_query], ctx.heads, like=y)
        for_both = _join([for_key, for_value], ctx.heads, like=memory)
        tensors = [*_weight_gradients(for_queries, y), *_alternating(_weight_gradients(for_both, memory), 2)]
        return for_queries @ weight, for_both @ memory_weight, *others, *tensors, *for_maps, *for_gains


def _softmax(scores: Tensor) -> Tensor:
    """The softmax of every row; PyTorch computes rows shorter than a register faster as columns."""
    return scores.softmax(-1) if scores.size(-1) >= REGISTER else scores.mT.softmax(-2).mT


def _softmax_backward(gradient: Tensor, weights: Tensor) -> Tensor:
    if weights.size(-1) >= REGISTER:
        return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)
    return torch._softmax_backward_data(gradient.mT, weights.mT, -2, weights.dtype).mT


def _normalize(x: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors scaled to a mean square of 1, times the gain; and what the backward pass needs."""
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    normalized = x * scale
    return normalized * gain, normalized, scale, gain


def _normalize_backward(gradient: Tensor, normalized: Tensor, scale: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x and of the gain."""
    product = gradient * normalized
    along = (product @ gain)[..., None] / gain.numel()
    return (gradient * gain - normalized * along) * scale, product.sum((0, 1))


def _linear(rows: Tensor, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """Rows @ weight.T + bias, then ReLU if so asked; in bfloat16 by oneDNN in one pass."""
    bias = bias.to(rows.dtype)
    if rows.dtype == torch.bfloat16 and HAS_ONEDNN:
        after = "relu" if relu else "none"
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, after, [], "")  # type: ignore[no-any-return]
    result = F.linear(rows, weight, bias)
    return result.relu_() if relu else result


def _weight_gradients(for_output: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias, in float32."""
    columns = for_output.mT
    if for_output.size(1) < rows.size(1):
        columns = columns.contiguous()  # less work than to transpose them inside the product
    return (columns @ rows).float(), for_output.sum(0).float()


def _project(rows: Tensor, maps: tuple[Tensor, ...], heads: int, sentences: int, length: int) -> tuple[Tensor, Tensor]:
    """Several linear maps of the same rows as one product, split into heads; and the weight of that product."""
    weight, bias = (torch.cat([one.to(rows.dtype) for one in both]) for both in (maps[::2], maps[1::2]))
    return _split(_linear(rows, weight, bias), len(maps) // 2, heads, sentences, length), weight


def _split(rows: Tensor, maps: int, heads: int, sentences: int, length: int) -> Tensor:
    """(R, maps·H·K) → (maps, B·H, L, K), in float32."""
    split = rows[: sentences * length].view(sentences, length, maps, heads, -1).permute(2, 0, 3, 1, 4)
    return split.to(torch.float32, memory_format=torch.contiguous_format).flatten(1, 2)


def _join(maps: list[Tensor], heads: int, *, like: Tensor) -> Tensor:
    """Several (B·H, L, K) → (R, maps·H·K), with as many rows as `like` and of its dtype."""
    both, length, width = maps[0].shape
    rows = like.new_empty(len(like), len(maps) * heads * width)
    rows[both // heads * length :] = 0
    parts = rows[: both // heads * length].view(-1, length, len(maps), heads, width)
    for i, split in enumerate(maps):
        parts[:, :, i] = split.view(-1, heads, length, width).transpose(1, 2)
    return rows


def _alternating(weight_and_bias: tuple[Tensor, Tensor], count: int) -> list[Tensor]:
    """The gradients of several maps in a row: weight, bias, weight, bias, …"""
    return [tensor for pair in zip(*(both.chunk(count) for both in weight_and_bias), strict=True) for tensor in pair]
