"""Record what a model computes, with forward hooks that are removed when the `with` block ends.

The model contains no code for this, and its outputs do not change by a single bit.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from ...nn import (
    FeedForward,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    PositionalEncoding,
    Residual,
    Transformer,
)

Recording = dict[str, Tensor]


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[Recording]:
    """Record the attention weights of the latest call of each attention of `model` inside the `with` block.

    Yields a dictionary that is filled while the model runs: names such as `decoder.layers.0.cross_attention` → weights
    (B, H, T, S). The model still uses its fused kernel; the weights are computed separately by equation 1 from the same
    inputs. Only calls in this thread are recorded, because other threads may be using the model.
    """
    recording: Recording = {}
    with ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, MultiHeadAttention):
                _hook(hooks, part, _note_attention, recording, name)
        yield recording


@contextmanager
def recorded(model: Transformer) -> Iterator[Recording]:
    """Record the tensors of Figure 1 that are listed below, from the latest `model(source, target)` inside the block.

    Yields a dictionary that is filled as the model runs. For every layer i of `encoder` and `decoder` (in the decoder,
    `self_attention` or `cross_attention` instead of `attention`):

        source.embedding, target.embedding         √d_model times a row of the table     (B, L, D)
        source.position, target.position           the position vectors                  (L, D)
        source.sum, target.sum                     their sum, after dropout              (B, L, D)
        encoder.layers.i.attention                 the weights of equation 1             (B, H, T, S)
        encoder.layers.i.attention.query           Q of every head; T is L               (B, H, T, K)
        encoder.layers.i.attention.key             K                                     (B, H, S, K)
        encoder.layers.i.attention.value           V, as the weights multiply it         (B, H, S, K)
        encoder.layers.i.attention.scores          QKᵀ / √d_k; −∞ where masked           (B, H, T, S)
        encoder.layers.i.attention.heads           the weights times V                   (B, H, T, K)
        encoder.layers.i.attention.output          what attention adds to the residual   (B, L, D)
        encoder.layers.i.attention_residual        hidden states after add & norm        (B, L, D)
        encoder.layers.i.attention_residual.norm   what the norm of this sublayer gives  (B, L, D)
        encoder.layers.i.feed_forward.hidden       between the two maps, after the ReLU  (B, L, F)
        encoder.layers.i.feed_forward.output       what the network adds to the residual (B, L, D)
        encoder.layers.i.feed_forward_residual     hidden states after add & norm        (B, L, D)
        decoder.layers.i.logits                    the logit lens: the logits if this
                                                   layer were the last                   (B, T, V)
        encoder.norm, decoder.norm                 the closing norm, only with pre-norm  (B, L, D)
        encoder, decoder                           the output of each stack, normalized  (B, L, D)
        logits                                     the logits of the model               (B, T, V)

    Decoding token by token, with a KV cache, is not for recording: each call shows its newest token only.
    """
    with recorded_attention(model) as recording, ExitStack() as hooks:
        for side, part in (("source", model.source_position), ("target", model.target_position)):
            _hook(hooks, part, _note_position, recording, side)
        for name, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                _hook(hooks, module, _note_parts, recording, name)
                _hook(hooks, module, _note_output, recording, f"{name}.output")
            elif isinstance(module, FeedForward):
                _hook(hooks, module.inner, partial(_note_hidden, module), recording, f"{name}.hidden")
                _hook(hooks, module, _note_output, recording, f"{name}.output")
            elif isinstance(module, Residual | LayerNorm):
                _hook(hooks, module, _note_output, recording, name)
        for i, layer in enumerate(model.decoder.layers):
            _hook(hooks, layer, partial(_note_lens, model), recording, f"decoder.layers.{i}.logits")
        for name, whole in (("encoder", model.encoder), ("decoder", model.decoder), ("logits", model.projection)):
            _hook(hooks, whole, _note_output, recording, name)
        yield recording


def _hook(hooks: ExitStack, part: nn.Module, note: Any, seen: Recording, name: str) -> None:
    thread = get_ident()

    def note_own_calls(*call: Any) -> None:
        if get_ident() == thread:
            note(seen, name, *call)

    hooks.callback(part.register_forward_hook(note_own_calls).remove)


def _note_attention(seen: Recording, name: str, part: MultiHeadAttention, inputs: tuple[Any, ...], _: Tensor) -> None:
    query, key, _, attn_mask = (*inputs, None)[:4]
    with torch.no_grad():
        seen[name] = part.weights(query, key, attn_mask)


def _note_parts(seen: Recording, name: str, part: MultiHeadAttention, inputs: tuple[Any, ...], _: Tensor) -> None:
    query, key, value, attn_mask = (*inputs, None)[:4]
    with torch.no_grad():
        queries, keys, values = part.project(query, key, value)  # (B, T, D) → (B, H, T, K)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.size(-1))
        seen[f"{name}.query"], seen[f"{name}.key"], seen[f"{name}.value"] = queries, keys, values
        seen[f"{name}.scores"] = scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf)
        seen[f"{name}.heads"] = seen[name] @ values  # the weights were recorded before


def _note_position(
    seen: Recording, side: str, part: PositionalEncoding | LearnedPositions, inputs: tuple[Tensor], output: Tensor
) -> None:
    seen[f"{side}.embedding"], seen[f"{side}.sum"] = inputs[0].detach(), output.detach()
    seen[f"{side}.position"] = part.encoding[: output.size(1)].detach()


def _note_output(seen: Recording, name: str, part: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    seen[name] = output.detach()


def _note_hidden(
    whole: FeedForward, seen: Recording, name: str, part: nn.Module, inputs: tuple[Tensor], output: Tensor
) -> None:
    seen[name] = whole.activation(output.detach())


def _note_lens(
    model: Transformer, seen: Recording, name: str, part: nn.Module, inputs: tuple[Any, ...], output: Tensor
) -> None:
    # a call of the module, instead of `forward`, would run its hooks
    with torch.no_grad():
        seen[name] = model.projection.forward(model.decoder.norm.forward(output))
