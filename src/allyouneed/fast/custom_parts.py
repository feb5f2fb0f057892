"""Whether a model consists of the modules of nn/ alone, unchanged; code that re-implements them must know."""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks_of_all

from ..nn import Transformer
from ..younger import build_model
from .uninitialized import UninitializedWeights

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")
_ONLY_IN_TRAINING = {"dropout", "p", "training"}

_unchanged: "WeakKeyDictionary[Transformer, tuple[list[Any], bool]]" = WeakKeyDictionary()


def is_unchanged(model: Transformer) -> bool:
    """Whether `find_custom_part` finds none; asked again when a module has been replaced or hooked."""
    hooked = any(getattr(hooks_of_all, name) for name in _GLOBAL_HOOKS)
    parts = [
        (id(part), "forward" in vars(part), *(bool(vars(part)[name]) for name in _HOOKS)) for part in model.modules()
    ]
    seen = [hooked, *parts]
    if model not in _unchanged or _unchanged[model][0] != seen:
        _unchanged[model] = seen, find_custom_part(model) is None
    return _unchanged[model][1]


def find_custom_part(model: Transformer) -> str | None:
    """A description of the first part of `model` that differs from `Transformer(model.config)`; None if none does.

    It compares the types of all modules, their attributes, and the names, shapes and dtypes of weights, and looks for
    forward hooks, forward methods set on an instance, and global hooks.
    """
    if any(getattr(hooks_of_all, name) for name in _GLOBAL_HOOKS):
        return "every module has a forward hook"
    with torch.device("meta"), UninitializedWeights():
        standard = dict(build_model(model.config).float().named_modules(remove_duplicate=False))
    parts = dict(model.named_modules(remove_duplicate=False))
    for name in sorted(standard.keys() | parts.keys()):
        if name not in parts:
            return f"{name} is missing"
        if name not in standard or type(parts[name]) is not type(standard[name]):
            return f"{name or 'the model'} is a {type(parts[name]).__name__}"
        if any(getattr(parts[name], hooks) for hooks in _HOOKS):
            return f"{name or 'the model'} has a forward hook"
        if _attributes(parts[name]) != _attributes(standard[name]):
            return f"{name or 'the model'} has other attributes or weights"
    return None


def _attributes(part: nn.Module) -> dict[str, Any]:
    attributes = {name: value for name, value in vars(part).items() if name[0] != "_" and name not in _ONLY_IN_TRAINING}
    tensors = {**dict(part.named_parameters(recurse=False)), **dict(part.named_buffers(recurse=False))}
    return attributes | {
        name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items() if isinstance(tensor, Tensor)
    }
