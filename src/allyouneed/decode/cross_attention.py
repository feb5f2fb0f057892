"""Which source token each target token comes from, as the cross-attention has it."""

import threading
from typing import Any

from torch import Tensor

from ..nn import Memory, MultiHeadAttention, Transformer


def align_targets(model: Transformer, target: Tensor, memory: Memory, is_word: Tensor) -> Tensor:
    """For every token of a target but its first, the source position with the highest attention weight.

    The weights are the mean over the heads of the `alignment_layer`. Only positions where `is_word` is true count:
    attention that goes to no token in particular gathers at the special tokens. Shapes: target (B, T + 1),
    is_word (B, S) → (B, T).
    """
    layer = alignment_layer(model.config.decoder_layers)
    weights = cross_attention(model, target[:, :-1], memory, layer=layer)
    return weights.mean(1).masked_fill(~is_word[:, None], -1.0).argmax(-1)  # (B, H, T, S) → (B, T)


def alignment_layer(layers: int) -> int:
    """Which of a decoder's layers, counted from 0, aligns best: of six or more the last but one (Garg et al., 2019).

    In shallow models it is the last.
    """
    return layers - 2 if layers >= 6 else layers - 1


def cross_attention(model: Transformer, target_in: Tensor, memory: Memory, *, layer: int) -> Tensor:
    """The cross-attention weights of a layer, (B, H, T, S), by equation 1."""
    seen: list[Tensor] = []
    thread = threading.get_ident()

    def note(part: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        if threading.get_ident() == thread:  # other threads may be using the same model
            query, key, _, attn_mask = inputs
            seen.append(part.weights(query, key, attn_mask))

    part = model.get_submodule(f"decoder.layers.{layer}.cross_attention")
    hook = part.register_forward_pre_hook(note)
    try:
        model.decode(target_in, memory)
    finally:
        hook.remove()
    return seen[0]
