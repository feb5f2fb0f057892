"""Build models without initial weights, for weights that are read from a file or never used."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_RANDOM = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)


class UninitializedWeights(TorchFunctionMode):
    """New parameters made inside the `with` block keep whatever their memory holds.

    Drawing random numbers for a large model takes seconds; on the device "meta", PyTorch even loads its compiler to do
    so.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Pass PyTorch's calls on, unless they draw random numbers."""
        kwargs = kwargs or {}
        if func in _RANDOM:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)
