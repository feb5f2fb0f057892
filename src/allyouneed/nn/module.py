"""PyTorch's modules with types: calling a module returns a tensor."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torch import Tensor, nn


class Module(nn.Module):
    """The base of every box of Figure 1."""

    __call__: Callable[..., Tensor]


class Linear(Module, nn.Linear):
    """xW + b. Shapes: (…, in) → (…, out)."""


class Identity(Module, nn.Identity):
    """x itself."""


Layer = TypeVar("Layer", bound=nn.Module)


class Layers(nn.ModuleList, Generic[Layer]):
    """The layers of a stack, all of one type."""

    def __iter__(self) -> Iterator[Layer]:
        return super().__iter__()  # type: ignore[return-value]
