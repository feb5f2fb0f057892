"""Notice when the weights of a model have changed after something was made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn


class WeightVersions:
    """How often PyTorch has changed each tensor of a model. Changes through `tensor.data` are not counted."""

    def __init__(self, model: nn.Module) -> None:
        # Every call that translates reads these tables. `parameters()` and `buffers()` would take ten times as long,
        # 1.3 ms rather than 0.13 with 256 tensors, and PyTorch has no public name for the count of changes.
        self._tables = [table for part in model.modules() for table in (part._parameters, part._buffers) if table]
        self._versions = self._read()

    def have_changed(self) -> bool:
        """Return True if a tensor was changed in place, or replaced, since this object was made."""
        now = self._read()
        return len(now) != len(self._versions) or any(
            tensor is not before or version != old
            for (tensor, version), (before, old) in zip(now, self._versions, strict=True)
        )

    def _read(self) -> list[tuple[Tensor, int]]:
        """Read how often each tensor has been changed in place. Tensors of inference mode have no count."""
        return [
            (tensor, 0 if tensor.is_inference() else tensor._version)
            for table in self._tables
            for tensor in table.values()
            if tensor is not None
        ]
