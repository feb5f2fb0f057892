"""PyTorch, imported when something of it is first used: a translation may be made without it (`light/`).

Importing it takes over a second. Modules that a translation needs import `torch` and `Tensor` from here, and name
neither in a default, a decorator or a base class.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:

    class _Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self.__name__), name)

    torch = _Lazy("torch")

    class Tensor:
        """Stands for `torch.Tensor` in annotations."""
