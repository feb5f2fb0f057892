"""What a search computes with: models and their engine, or before PyTorch is imported the model in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..bundle import WEIGHTS_FILE
from ..checksums import Checksums
from ..config import ModelConfig
from ..device import using_threads
from ..fast.fastest_way import FastestWay
from ..lazy import Tensor
from ..machine_notes import read_note, write_note

if TYPE_CHECKING:
    from ..fast.engine import AnyEngine, Precision
    from ..light.search import LightModel
    from ..nn import Transformer


class PreparedModel:
    """Some models of one vocabulary and the engine of their search, which `load` makes when first asked for."""

    def __init__(
        self,
        config: ModelConfig,
        load: Callable[[], tuple[Sequence[Transformer], AnyEngine]],
        *,
        light: LightModel | None = None,
    ) -> None:
        self.config, self.light = config, light
        self.one_thread_or_all = FastestWay[[Callable[[], Tensor]], Tensor](
            lambda compute: using_threads(1)(compute)(), lambda compute: compute()
        )
        self._load, self._lock = load, Lock()
        self._loaded: tuple[Sequence[Transformer], AnyEngine] | None = None

    @property
    def models(self) -> Sequence[Transformer]:
        """The models."""
        return self._models_and_engine()[0]

    @property
    def engine(self) -> AnyEngine:
        """The engine."""
        return self._models_and_engine()[1]

    @property
    def precision(self) -> Precision:
        """The precision of the weights."""
        return self.light.precision if self.light and not self._loaded else self.engine.precision

    @property
    def compiled(self) -> bool:
        """Whether compiled kernels compute."""
        return not (self.light and not self._loaded) and self.engine.compiled

    @cached_property
    def least_share(self) -> int:
        """How many texts of a batch at least are worth a thread of their own on this machine."""
        from ..fast.measured import KERNELS, PYTORCH, SENTENCES, read_speeds

        speed = read_speeds(self.engine.config, self.precision).get(KERNELS if self.compiled else PYTORCH)
        return SENTENCES // (speed.threads if speed else 2)

    def _models_and_engine(self) -> tuple[Sequence[Transformer], AnyEngine]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded


def note_light(folder: Path, model: Transformer, engine: AnyEngine) -> None:
    """Compare the model of a bundle in NumPy with `engine`, and note if the numbers are the same (machine_notes.py)."""
    from ..fast.comparison import compare_light
    from ..fast.eager import EagerEngine
    from ..fast.quantization import greatest_level
    from ..fast.selection import pick_precision
    from ..light.engine import LightEngine
    from ..nn.weights import weights

    is_usual = isinstance(engine, EagerEngine) and engine.precision == pick_precision(model)
    digest = Checksums(folder).digest(WEIGHTS_FILE)
    if not is_usual or model.projection.table.device.type != "cpu" or read_note("compared", model.config, digest):
        return
    greatest = greatest_level() if engine.precision == "int8" else None
    try:
        light = LightEngine(model.config, {name: one.numpy() for name, one in weights(model).items()}, greatest)
    except KeyError:  # a weight has another name: an edited model
        return
    if not compare_light(light, engine, model):
        write_note({"greatest": greatest}, "compared", model.config, digest)
