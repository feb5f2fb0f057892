"""What a search computes with: models and their engine, or before PyTorch is imported the model in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..bundle import WEIGHTS_FILE
from ..checksums import Checksums
from ..config import ModelConfig
from ..light.stamp import read_stamp, write_stamp

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

    def _models_and_engine(self) -> tuple[Sequence[Transformer], AnyEngine]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded


def note_light(folder: Path, model: Transformer, engine: AnyEngine) -> None:
    """Compare the model of a bundle in NumPy with `engine`, and note if the numbers are the same (light/stamp.py)."""
    from ..fast.comparison import compare_light
    from ..fast.eager import EagerEngine
    from ..fast.quantization import greatest_level
    from ..fast.selection import pick_precision
    from ..light.engine import LightEngine
    from ..nn.weights import weights

    is_usual = isinstance(engine, EagerEngine) and engine.precision == pick_precision(model)
    digest = Checksums(folder).digest(WEIGHTS_FILE)
    if not is_usual or model.projection.table.device.type != "cpu" or read_stamp(model.config, digest):
        return
    greatest = greatest_level() if engine.precision == "int8" else None
    try:
        light = LightEngine(model.config, {name: one.numpy() for name, one in weights(model).items()}, greatest)
    except KeyError:  # a weight has another name: an edited model
        return
    if not compare_light(light, engine, model):
        write_stamp(model.config, digest, greatest)
