"""Log-probabilities of a given target, and the source token that each target token attends to.

Computations use an `eval_copy` of each model, so that other threads may use the same weights.
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
    """Return a copy of the model in eval mode.

    The copy shares the weights and the present hooks; hooks added later to either stay separate.
    """
    return _copy(model, {})


def _copy(part: _Module, copies: dict[nn.Module, nn.Module]) -> _Module:
    # `copy.copy` would share the table of children, so that no child could be replaced, and `copy.deepcopy` would copy
    # whatever the hooks belong to.
    if part not in copies:  # a module may be part of the model twice, as with tied embeddings
        copy = copies[part] = object.__new__(type(part))
        hooks = {name: getattr(part, name).copy() for name in _HOOKS}
        copy.__dict__.update(vars(part), **hooks, training=False)
        children = part._modules.items()
        copy._modules = {name: None if child is None else _copy(child, copies) for name, child in children}
    return copies[part]  # type: ignore[return-value]


def target_log_probabilities(
    model: Transformer, target: Tensor, memory: Memory, *, banned_ids: Sequence[int] = (), renormalize: bool = True
) -> Tensor:
    """Compute the log-probability, in nats, of every target token except the first, given all tokens before it.

    Tokens in `banned_ids` have a probability of 0, as in a search; with `renormalize`, the other tokens share the
    banned probability. Shapes: target (B, T + 1), padded at the end → (B, T), with 0 at padding.
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
    """Find the source position with the highest attention weight for every target token except the first.

    The weights are averaged over the models, and over the heads of each model's `alignment_layer`. Only positions where
    `is_word` is True count, because idle heads attend to the special tokens. Shapes: source and is_word (B, S), target
    (B, T + 1) → (B, T).
    """
    weights = torch.stack([_mean_attention(model, source, target[:, :-1]) for model in models]).mean(0)
    return weights.masked_fill(~is_word[:, None], -1.0).argmax(-1)  # (B, T, S) → (B, T)


def _mean_attention(model: Transformer, source: Tensor, target_in: Tensor) -> Tensor:
    """Compute the cross-attention weights of the alignment layer, averaged over its heads. Returns (B, T, S)."""
    layer = alignment_layer(model.config.decoder_layers)
    return cross_attention(model, source, target_in, layer=layer).mean(1)


def alignment_layer(layers: int) -> int:
    """Choose the decoder layer, counted from 0, that aligns best.

    With six layers or more this is the second last (Garg et al., 2019), otherwise the last.
    """
    return layers - 2 if layers >= 6 else layers - 1


def cross_attention(model: Transformer, source: Tensor, target_in: Tensor, *, layer: int) -> Tensor:
    """Compute the cross-attention weights of a layer, (B, H, T, S), without dropout."""
    seen: list[Tensor] = []

    def note(part: MultiHeadAttention, inputs: tuple[Any, ...]) -> None:
        query, key, _, attn_mask, *_ = inputs
        seen.append(part.weights(query, key, attn_mask))

    model = eval_copy(model)  # somebody else may be using the model
    model.get_submodule(f"decoder.layers.{layer}.cross_attention").register_forward_pre_hook(note)
    model.hidden_states(source, target_in)
    return seen[0]
