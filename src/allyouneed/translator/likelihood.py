"""Log-probabilities of a given target, and the source token that each of its tokens attends to.

The models compute through an `eval_copy`, whatever other threads do with the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..nn import Memory, MultiHeadAttention, Transformer

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")

_Module = TypeVar("_Module", bound=nn.Module)


def eval_copy(model: _Module) -> _Module:
    """Return a copy in eval mode that shares weights and hooks of `model`; more hooks on either are its own."""
    return _copy(model, {})


def _copy(part: _Module, copies: dict[nn.Module, nn.Module]) -> _Module:
    if part not in copies:  # two parts of a model may be the same module, as tied embeddings are
        copy = copies[part] = object.__new__(type(part))
        hooks = {name: getattr(part, name).copy() for name in _HOOKS}
        copy.__dict__.update(vars(part), **hooks, training=False)
        children = part._modules.items()
        copy._modules = {name: None if child is None else _copy(child, copies) for name, child in children}
    return copies[part]  # type: ignore[return-value]


def target_log_probabilities(
    model: Transformer, target: Tensor, memory: Memory, *, banned_ids: Sequence[int] = (), renormalize: bool = True
) -> Tensor:
    """Compute the log-probability, in nats, of every token of a target except the first, given all before it.

    `banned_ids` have a probability of 0, as in a search; with `renormalize` the other tokens share it. Shapes:
    target (B, T + 1), padded at the end → (B, T), 0 where there is padding.
    """
    logits = model.decode(target[:, :-1], memory)
    if not renormalize:
        logits = logits.float().log_softmax(-1)
    logits[..., list(banned_ids)] = -torch.inf
    next_ids = target[:, 1:]
    log_probabilities = logits.float().log_softmax(-1) if renormalize else logits
    gained = log_probabilities.gather(-1, next_ids[:, :, None])[:, :, 0]  # (B, T, V) → (B, T)
    return gained.masked_fill(next_ids == model.config.effective_target_pad_id, 0.0)


def align_targets(models: Sequence[Transformer], source: Tensor, target: Tensor, is_word: Tensor) -> Tensor:
    """Find for every token of a target except the first the source position with the highest attention weight.

    The weights are the mean over the models, and over the heads of the `alignment_layer` of each. Only positions where
    `is_word` is true count: attention that goes to no token in particular gathers at the special tokens. Shapes:
    source and is_word (B, S), target (B, T + 1) → (B, T).
    """
    weights = torch.stack([_mean_attention(model, source, target[:, :-1]) for model in models]).mean(0)
    return weights.masked_fill(~is_word[:, None], -1.0).argmax(-1)  # (B, T, S) → (B, T)


def _mean_attention(model: Transformer, source: Tensor, target_in: Tensor) -> Tensor:
    """Compute the cross-attention weights of the alignment layer, averaged over its heads: (B, T, S)."""
    layer = alignment_layer(model.config.decoder_layers)
    return cross_attention(model, source, target_in, layer=layer).mean(1)


def alignment_layer(layers: int) -> int:
    """Choose the layer of a decoder, counted from 0, that aligns best.

    With six layers or more it is the last but one (Garg et al., 2019), in shallower models the last.
    """
    return layers - 2 if layers >= 6 else layers - 1


def cross_attention(model: Transformer, source: Tensor, target_in: Tensor, *, layer: int) -> Tensor:
    """Compute the cross-attention weights of a layer, (B, H, T, S), by equation 1, without dropout."""
    seen: list[Tensor] = []

    def note(part: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        query, key, _, attn_mask, *_ = inputs
        seen.append(part.weights(query, key, attn_mask))

    model = eval_copy(model)  # others may be using the same model
    model.get_submodule(f"decoder.layers.{layer}.cross_attention").register_forward_pre_hook(note)
    model.hidden_states(source, target_in)
    return seen[0]
