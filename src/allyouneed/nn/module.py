"""PyTorch's module classes with better types: calling a module returns a tensor."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torch import Tensor, nn


class Module(nn.Module):
    """The base class of every box in Figure 1."""

    __call__: Callable[..., Tensor]


class Linear(Module, nn.Linear):
    """A linear map: xW + b. Shapes: (…, in) → (…, out)."""


class Identity(Module, nn.Identity):
    """A module that returns its input."""


Layer = TypeVar("Layer", bound=nn.Module)


class Layers(nn.ModuleList, Generic[Layer]):
    """A list of layers, typed so that iterating yields layers of one class."""

    def __iter__(self) -> Iterator[Layer]:
        return super().__iter__()  # type: ignore[return-value]
