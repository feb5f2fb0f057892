"""A model to read with: in eval mode, and with hooks of its own, whatever other threads do with the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import nn

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")

_Module = TypeVar("_Module", bound="nn.Module")


def eval_copy(model: _Module) -> _Module:
    """A copy in eval mode that shares the weights of `model`, with its hooks; more hooks on either are its own."""
    return _copy(model, {})


def _copy(part: _Module, copies: dict[nn.Module, nn.Module]) -> _Module:
    if part not in copies:  # two parts of a model may be one module, as tied embeddings are
        copy = copies[part] = object.__new__(type(part))
        hooks = {name: getattr(part, name).copy() for name in _HOOKS}
        copy.__dict__.update(vars(part), **hooks, training=False)
        children = part._modules.items()
        copy._modules = {name: None if child is None else _copy(child, copies) for name, child in children}
    return copies[part]  # type: ignore[return-value]
