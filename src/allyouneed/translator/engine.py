"""The interface between a translator and a model (`Engine`), and the choice of an engine for a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from ..config import ModelConfig
from ..decode import Step
from ..errors import ConfigError, SlowerEngineWarning
from ..native.definition import is_as_compared
from ..native.engine import NativeEngine, fits_int8
from ..native.engine import Precision as NativePrecision
from ..native.library import load_library

if TYPE_CHECKING:
    from ..bundle import Bundle
    from ..nn import Transformer

Precision = Literal["float32", "int8", "bfloat16"]


class EngineStep(Step, Protocol):
    """The `Step` of a search with an engine."""

    def log_probabilities(self) -> Any:
        """Return the log-probabilities of the next token, (N, V), as an object that `numpy.asarray` accepts."""
        ...


class Engine(Protocol):
    """A model, or several models as an ensemble, ready to translate. Several threads may use it at once.

    `config` is the config of the model. An ensemble has the config of its first model, with the smallest `max_length`.
    """

    @property
    def config(self) -> ModelConfig: ...

    @property
    def precision(self) -> Precision:
        """The precision of the weights."""
        ...

    @property
    def workers(self) -> int:
        """The number of searches to run at once: one for each core, or 1 if a search uses the whole device."""
        ...

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> EngineStep:
        """Encode sources and start a search.

        Tokens in `banned_ids` get a probability of 0. With `renormalize`, the other tokens share the banned
        probability.
        """
        ...


def make_engine(models: Sequence[Bundle | Transformer], precision: str = "auto") -> Engine:
    """Prepare a model, or several as an ensemble, for translation.

    On a CPU the engine in C translates, on a GPU `nn/` does; a CUDA GPU replays the steps as graphs. `precision` is the
    type of the weights. "auto" means int8 on a CPU if the vocabulary is large, bfloat16 on a GPU that supports it, and
    float32 otherwise. An engine whose results differ from `nn/`, because somebody has edited `nn/`, is not used: `nn/`
    translates, and a warning says so.
    """
    if precision not in ("auto", *get_args(Precision)):
        known = ", ".join(f'"{name}"' for name in ("auto", *get_args(Precision)))
        raise ConfigError(f"precision must be one of {known}; got {precision!r}")
    engines = [_make_one(model, precision) for model in models]
    if len(engines) == 1:
        return engines[0]
    from .ensemble import EnsembleEngine

    return EnsembleEngine(engines)


INT8_MIN_PROJECTION = 1_000_000
"""From this many weights in the projection on, "auto" means int8 on a CPU.

In float32 they are four megabytes, which are read for every token. Only the model decides, not the processor, so that a
model translates with the same weights everywhere.
"""


def pick_precision(config: ModelConfig) -> Literal["float32", "int8"]:
    """Return the precision that "auto" means on a CPU for a model of these sizes."""
    is_large = config.effective_target_vocab_size * config.d_model >= INT8_MIN_PROJECTION
    return "int8" if is_large and fits_int8(config) else "float32"


def _make_one(model: Bundle | Transformer, precision: str) -> Engine:
    from ..bundle import Bundle
    from .unread_bundle import UnreadBundle

    on_cpu = isinstance(model, UnreadBundle) or _is_on_cpu(model)
    # Made by the user's own function, which the engine in C does not know.
    is_own = isinstance(model, Bundle) and bool(model.builder)
    if on_cpu and precision != "bfloat16" and not is_own and load_library() is not None:
        chosen = pick_precision(model.config) if precision == "auto" else cast(NativePrecision, precision)
        if isinstance(model, UnreadBundle) and is_as_compared():
            return NativeEngine(model.config, model.weights(), chosen)
        definition = model.model if isinstance(model, Bundle) else model
        engine = _compared_engine(definition, chosen)
        if engine:
            return engine
    elif precision == "int8":
        missing = "the engine in C was not compiled (see docs/install.md)" if on_cpu else "int8 is for a CPU"
        missing = "a model of your own has no engine in C" if is_own else missing
        warnings.warn(f"{missing}; nn/ translates in float32, more slowly", SlowerEngineWarning, stacklevel=3)
    definition = model.model if isinstance(model, Bundle) else model
    return _definition_engine(definition, "float32" if precision == "int8" else precision)


def _definition_engine(model: Transformer, precision: str) -> Engine:
    """Return `nn/` as an engine. A CUDA GPU uses graphs, if they compute the same results."""
    from ..machine.device import runs_ahead
    from .definition import DefinitionEngine

    if runs_ahead(next(model.parameters()).device):
        from ..fast.comparison import describe_change
        from .static_step import StaticEngine, find_difference

        engine = StaticEngine(model, precision)
        if not (difference := find_difference(engine)):
            return engine
        warnings.warn(f"{describe_change(model)} ({difference})", SlowerEngineWarning, stacklevel=5)
    return DefinitionEngine(model, precision)


def _compared_engine(model: Transformer, precision: NativePrecision) -> NativeEngine | None:
    """Return the engine in C for a model in memory; warn and return None if its results differ from `nn/`."""
    from ..fast.comparison import describe_change
    from ..nn.weights import weight_buffers
    from .comparison import difference_from_nn

    weights = weight_buffers(model)
    try:
        engine = NativeEngine(model.config, weights, precision)
        difference = difference_from_nn(engine, weights, model)
    except ConfigError as error:  # the model has parts that the config does not describe
        difference = str(error)
    if not difference:
        return engine
    warnings.warn(f"{describe_change(model)} (the engine in C: {difference})", SlowerEngineWarning, stacklevel=4)
    return None


def _is_on_cpu(model: Bundle | Transformer) -> bool:
    from ..bundle import Bundle

    parameters = (model.model if isinstance(model, Bundle) else model).parameters()
    return next(parameters).device.type == "cpu"
