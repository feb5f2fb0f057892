"""Which source token each target token comes from, as the cross-attention has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..lazy import Tensor, torch
from .eval_copy import eval_copy

if TYPE_CHECKING:
    from ..nn import MultiHeadAttention, Transformer


def align_targets(models: Sequence[Transformer], source: Tensor, target: Tensor, is_word: Tensor) -> Tensor:
    """For every token of a target but its first, the source position with the highest attention weight.

    The weights are the mean over the models, and over the heads of the `alignment_layer` of each. Only positions where
    `is_word` is true count: attention that goes to no token in particular gathers at the special tokens. Shapes:
    source and is_word (B, S), target (B, T + 1) → (B, T).
    """
    weights = torch.stack([_mean_attention(model, source, target[:, :-1]) for model in models]).mean(0)
    return weights.masked_fill(~is_word[:, None], -1.0).argmax(-1)  # (B, T, S) → (B, T)


def _mean_attention(model: Transformer, source: Tensor, target_in: Tensor) -> Tensor:
    """The cross-attention weights of the alignment layer, the mean over its heads: (B, T, S)."""
    layer = alignment_layer(model.config.decoder_layers)
    return cross_attention(model, source, target_in, layer=layer).mean(1)


def alignment_layer(layers: int) -> int:
    """Which of a decoder's layers, counted from 0, aligns best: of six or more the last but one (Garg et al., 2019).

    In shallow models it is the last.
    """
    return layers - 2 if layers >= 6 else layers - 1


def cross_attention(model: Transformer, source: Tensor, target_in: Tensor, *, layer: int) -> Tensor:
    """The cross-attention weights of a layer, (B, H, T, S), by equation 1, without dropout."""
    seen: list[Tensor] = []

    def note(part: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        query, key, _, attn_mask, *_ = inputs
        seen.append(part.weights(query, key, attn_mask))

    model = eval_copy(model)  # others may be using the same model
    model.get_submodule(f"decoder.layers.{layer}.cross_attention").register_forward_pre_hook(note)
    model.hidden_states(source, target_in)
    return seen[0]
