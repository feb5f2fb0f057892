"""The loss of a batch in bfloat16 on a CPU, computed in fewer and larger operations.

`nn/` defines the result. Here each sublayer is one autograd function with a gradient of its own (for attention, see
`bfloat16_attention.py`). Every tensor is cast to the dtype of the products only once, and a product also adds its bias
and applies the ReLU.

The vectors of one side of a batch are the rows of a single matrix. In bfloat16, rows of zeros bring their number up to
a round number, because oneDNN generates machine code for every new shape, which takes longer than the product, and
batches have hundreds of shapes.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Decoder, Encoder, Residual, Transformer
from ..nn.dropout import keep_factors
from ..nn.feedforward import FeedForward
from ..nn.mask import causal_mask, padding_mask
from ..train.gradients import autocast_dtype
from .attention import attention_bias
from .bfloat16_attention import attend
from .bfloat16_linear import linear_of_rows, weight_gradients
from .cast_weights import Weights, cast_weights
from .loss import loss_of_hidden_states, projected_loss, round_up

LONGEST = 128  # tokens in a sentence; attention weights of longer sentences take too much memory


def bfloat16_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """Compute the loss of `train.gradients.batch_loss`. Batches with long sentences use the model's own modules."""
    if max(batch.source.size(1), batch.target.size(1)) > LONGEST:
        return projected_loss(model, batch, config)
    batch = batch.duplicated() if config.r_drop else batch
    hidden_states = through_model(model, batch.source, batch.target_in, autocast_dtype(config.precision, model))
    pad_id = model.config.effective_target_pad_id
    return loss_of_hidden_states(model, hidden_states, batch.target_out, config, pad_id=pad_id)


def is_supported(model: Transformer) -> bool:
    """Return True if this file implements all parts that the config of `model` names."""
    config = model.config
    parts = (config.norm, config.activation, config.attention_dropout)
    return parts == ("post", "relu", 0) and config.d_k == config.d_v


def through_model(model: Transformer, source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute `model.hidden_states(source, target)` with products in `dtype`. Returns (B, T, D), float32."""
    weights = cast_weights(model, dtype)
    source_vectors, target_vectors = _embed(model, source, target)
    x = _as_rows(model.source_position(source_vectors), dtype)
    memory_mask = attention_bias(padding_mask(source, model.config.pad_id), torch.float32)
    memory = _through_encoder(model.encoder, weights, x, memory_mask, dtype)
    x = _as_rows(model.target_position(target_vectors), dtype)
    mask = attention_bias(causal_mask(target.size(1)), torch.float32)
    x = _through_decoder(model.decoder, weights, x, memory, memory_mask, mask, dtype)
    return x[: target.numel()].view(*target.shape, -1)


def _embed(model: Transformer, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Embed both sides. A shared table is looked up once for both, so that only one gradient of its size is made."""
    if model.source_embedding is not model.target_embedding:
        return model.source_embedding(source), model.target_embedding(target)
    vectors = model.source_embedding(torch.cat((source.flatten(), target.flatten())))
    of_source, of_target = torch.split(vectors, [source.numel(), target.numel()])
    return of_source.view(*source.shape, -1), of_target.view(*target.shape, -1)


def _as_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Flatten (B, L, D) to rows (R, D). In bfloat16, rows of zeros are added."""
    rows = x.flatten(0, 1)
    return F.pad(rows, (0, 0, 0, round_up(len(rows)) - len(rows))) if dtype == torch.bfloat16 else rows


def _through_encoder(encoder: Encoder, weights: Weights, x: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    y = x.to(dtype)
    shape = (mask.size(0), mask.size(-1), mask.size(-1))
    for layer in _blocks(encoder):
        attended = attend(layer.attention, weights, y, y, mask, shape)
        x, y = _add_and_norm(layer.attention_residual, x, attended, shape)
        x, y = _add_and_norm(layer.feed_forward_residual, x, _feed_forward(layer.feed_forward, weights, y), shape)
    return y


def _through_decoder(
    decoder: Decoder,
    weights: Weights,
    x: Tensor,
    memory: Tensor,
    memory_mask: Tensor,
    mask: Tensor,
    dtype: torch.dtype,
) -> Tensor:
    y = x.to(dtype)
    sentences = memory_mask.size(0)
    length = len(mask)
    itself = (sentences, length, length)
    across = (sentences, length, memory_mask.size(-1))
    for layer in _blocks(decoder):
        attended = attend(layer.self_attention, weights, y, y, mask, itself)
        x, y = _add_and_norm(layer.self_attention_residual, x, attended, itself)
        attended = attend(layer.cross_attention, weights, y, memory, memory_mask, across)
        x, y = _add_and_norm(layer.cross_attention_residual, x, attended, across)
        x, y = _add_and_norm(layer.feed_forward_residual, x, _feed_forward(layer.feed_forward, weights, y), itself)
    return x


def _blocks(stack: Encoder | Decoder) -> Iterable[Any]:
    return stack.layers


def _feed_forward(part: FeedForward, weights: Weights, y: Tensor) -> Tensor:
    return _FeedForward.apply(y, *weights[part.inner], *weights[part.outer])  # type: ignore[no-any-return, no-untyped-call]


def _add_and_norm(part: Residual, x: Tensor, z: Tensor, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """Compute Norm(x + Dropout(z)) in float32. Also returns it in the dtype of z, for the next products."""
    norm = part.norm
    p = part.dropout.p if part.dropout.training else 0.0
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
    def backward(ctx: Any, grad_exact: Tensor | None, grad_cast: Tensor | None) -> tuple[Tensor | None, ...]:
        total, mean, scale, gain, bias, factors = ctx.saved_tensors
        if grad_cast is None or grad_exact is None:
            gradient = grad_exact if grad_cast is None else grad_cast.float()
        else:
            gradient = grad_cast.float().add_(grad_exact)
        grad_x, grad_gain, grad_bias = torch.ops.aten.native_layer_norm_backward(
            gradient, total, gain.shape, mean, scale, gain, bias, [True, True, True]
        )
        grad_z = grad_x.to(ctx.dtype)
        return grad_x, grad_z if factors is None else grad_z * factors, None, grad_gain, grad_bias, None


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        hidden = linear_of_rows(y, w1, b1, relu=True)
        ctx.save_for_backward(y, hidden, w1, w2)
        return linear_of_rows(hidden, w2, b2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        y, hidden, w1, w2 = ctx.saved_tensors
        grad_w2, grad_b2 = weight_gradients(grad_output, hidden)
        grad_hidden = torch.ops.aten.threshold_backward(grad_output @ w2, hidden, 0)
        grad_w1, grad_b1 = weight_gradients(grad_hidden, y)
        return grad_hidden @ w1, grad_w1, grad_b1, grad_w2, grad_b2
