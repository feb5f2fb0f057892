"""An engine that is prepared again when the weights of its model have changed, by training for one."""

import threading
from collections.abc import Callable

from ..config import ModelConfig
from ..nn.transformer import Transformer
from .engine import AnyEngine, Precision
from .pinned import PinningEngine

WeightVersions = list[tuple[int, int]]


class CurrentEngine(PinningEngine):
    """What `make` makes of `model`, made again when a search begins after the weights have changed.

    So every search has the weights of one time; one that goes on while they change has no defined result. A change is
    noticed by PyTorch's count of the changes of each tensor, which a change through `tensor.data` does not raise.
    """

    def __init__(self, model: Transformer, make: Callable[[Transformer], AnyEngine]) -> None:
        self._model, self._make, self._changing = model, make, threading.Lock()
        self._tables = [table for part in model.modules() for table in (part._parameters, part._buffers) if table]
        self._versions = self._read_versions()  # before the engine is made: a change meanwhile is one more
        self._engine = make(model)

    @property
    def config(self) -> ModelConfig:
        """As in `Engine`."""
        return self._engine.config

    @property
    def precision(self) -> Precision:
        """As in `Engine`."""
        return self._engine.precision

    @property
    def can_be_joined(self) -> bool:
        """As in `Engine`."""
        return self._engine.can_be_joined

    def begin_search(self) -> AnyEngine:
        """As in `Engine`."""
        if self._read_versions() != self._versions:
            with self._changing:
                versions = self._read_versions()
                if versions != self._versions:  # no other thread was faster
                    self._engine = self._make(self._model)
                    self._versions = versions
        return self._engine.begin_search()

    def _read_versions(self) -> WeightVersions:
        """Where each weight is and how often it has been changed in place; a tensor of inference mode has no count."""
        return [
            (tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version)
            for table in self._tables
            for tensor in table.values()
            if tensor is not None
        ]
