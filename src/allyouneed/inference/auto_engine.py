"""Compiled by default: PyTorch answers at once, the compiled kernels as soon as they are loaded."""

import threading
import time
from itertools import count

from ..device import has_vnni
from ..interpreter import is_installed
from ..nn.transformer import Transformer
from .dispatch import auto_compiles
from .eager import EagerEngine
from .engine import Engine, Precision
from .kv_cache import CachedState
from .pinned import PinningEngine

COMPILING_SECONDS = 300.0  # how long to wait for another process that compiles the kernels
_POLL_SECONDS = 0.1


class AutoEngine(PinningEngine):
    """An `EagerEngine` at first, and the `CompiledEngine` of the same weights once a thread has loaded it.

    The thread starts with the second search, so that it does not delay the first. If Numba's cache holds the kernels,
    loading takes about a second; if not, a background process compiles them into the cache, and they are loaded when it
    has finished. Both engines give the same log-probabilities to the bit, so a translation does not depend on which of
    them computed it.
    """

    can_be_joined = True

    def __init__(self, model: Transformer, *, precision: Precision) -> None:
        self.config, self.precision = model.config, precision
        self._engine: Engine[CachedState] = EagerEngine(model, precision=precision)
        self._starts = count(1)
        self.loading = threading.Thread(target=self._load, args=(model,), name="compiled kernels")

    def begin_search(self) -> Engine[CachedState]:
        """As in `Engine`."""
        engine = self._engine
        if next(self._starts) == 2:
            self.loading.start()
        return engine

    def _load(self, model: Transformer) -> None:
        try:  # imports Numba, half a second
            from . import warm_up
            from .compiled import make_compiled_engine
        except (ImportError, RuntimeError):  # Numba refuses the versions, or finds no folder for what it compiles
            return
        if not warm_up.is_warm(self.precision):
            warm_up.start_in_background(self.precision)
        give_up = time.monotonic() + COMPILING_SECONDS
        while not warm_up.is_warm(self.precision) and time.monotonic() < give_up:
            if not threading.main_thread().is_alive():  # the program has ended, and waits for this thread
                return
            time.sleep(_POLL_SECONDS)
        if warm_up.is_warm(self.precision) and threading.main_thread().is_alive():
            engine = make_compiled_engine(model, precision=self.precision)
            warm_up.translate_once(engine)
            self._engine = engine


def can_auto_compile(model: Transformer, precision: Precision) -> bool:
    """Whether `compiled="auto"` means an `AutoEngine` for a model without parts of its own."""
    on_cpu = model.projection.table.device.type == "cpu"
    return on_cpu and auto_compiles(precision, has_vnni=has_vnni()) and is_installed("numba")
