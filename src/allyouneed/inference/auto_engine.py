"""Compiled by default: PyTorch answers at once, the compiled kernels as soon as they are loaded."""

import importlib.util
import threading

import torch
from torch import Tensor

from ..decode.beam import Best
from ..nn.transformer import Transformer
from .dispatch import auto_compiles
from .eager import EagerEngine
from .engine import Engine, Precision
from .kv_cache import CachedState


class AutoEngine:
    """An `EagerEngine` at first, and the `CompiledEngine` of the same weights once a thread has loaded it.

    Numba's cache decides: if it holds the kernels, loading takes about a second; if not, a background process fills
    it for later processes, and this one stays with PyTorch. Both engines quantize in the same way and share the
    layout of the KV cache, so that any step may be computed by either.
    """

    def __init__(self, model: Transformer, *, precision: Precision) -> None:
        self.config, self.precision = model.config, precision
        self._engine: Engine[CachedState] = EagerEngine(model, precision=precision)
        self.loading = threading.Thread(target=self._load, args=(model,), name="compiled kernels")
        self.loading.start()

    @property
    def compiled(self) -> bool:
        """Whether the compiled engine answers by now."""
        return self._engine.compiled

    def start(self, source: Tensor) -> CachedState:
        """As in `Engine`."""
        return self._engine.start(source)

    def step(self, last: Tensor, state: CachedState) -> tuple[Tensor, CachedState]:
        """As in `Engine`."""
        return self._engine.step(last, state)

    def log_probabilities(self, last: Tensor, state: CachedState, banned_ids: Tensor) -> tuple[Tensor, CachedState]:
        """As in `Engine`."""
        return self._engine.log_probabilities(last, state, banned_ids)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return self._engine.top_continuations(totals, log_probabilities, count)

    def _load(self, model: Transformer) -> None:
        try:  # imports Numba, half a second
            from . import warm_up
            from .compiled import CompiledEngine
        except ImportError:  # Numba is there, but refuses the versions it finds
            return
        if not warm_up.is_warm(self.precision, model.config.decoder_layers):
            warm_up.start_in_background(self.precision, model.config.decoder_layers)
            return
        if threading.main_thread().is_alive():  # a program that has ended waits for this thread
            engine = CompiledEngine(model, precision=self.precision)
            warm_up.translate_once(engine)
            self._engine = engine


def can_auto_compile(model: Transformer, precision: Precision) -> bool:
    """Whether `compiled="auto"` means an `AutoEngine` for a model without parts of its own."""
    on_cpu = model.projection.table.device.type == "cpu"
    has_vnni = torch.cpu._is_vnni_supported()
    return on_cpu and auto_compiles(precision, has_vnni=has_vnni) and importlib.util.find_spec("numba") is not None
