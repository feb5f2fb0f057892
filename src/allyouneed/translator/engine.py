"""`Engine`, a translator's interface to a model; and the choice of an engine for a model."""

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
        """Return log-probabilities of the next token, (N, V), as an object that `numpy.asarray` takes."""
        ...


class Engine(Protocol):
    """A model, or several as an ensemble, ready to translate; several threads may use it at once.

    `config` is the model's; an ensemble has the first model's, with the smallest `max_length`.
    """

    @property
    def config(self) -> ModelConfig: ...

    @property
    def precision(self) -> Precision:
        """The precision of the weights."""
        ...

    @property
    def workers(self) -> int:
        """The number of searches to run at once: one for each core, or 1 where one search uses the whole device."""
        ...

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> EngineStep:
        """Encode sources, and return the step of one search.

        `banned_ids` have a probability of 0; with `renormalize` the other tokens share it.
        """
        ...


def make_engine(models: Sequence[Bundle | Transformer], precision: str = "auto") -> Engine:
    """Prepare a model, or several as an ensemble, for translating.

    On a CPU the engine in C translates, on a GPU `nn/` does, and a CUDA GPU replays its steps as graphs. `precision`
    is the type of the weights; "auto" is int8 for a large vocabulary on a CPU, bfloat16 on a GPU that computes with it,
    else float32. If an engine differs from `nn/`, because somebody has edited `nn/`, then `nn/` itself translates, and
    a warning says so.
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
"""Weights of the projection from which "auto" means int8: four megabytes in float32, read anew for every token.

The model alone decides, so that a model translates with the same weights on every processor.
"""


def pick_precision(config: ModelConfig) -> Literal["float32", "int8"]:
    """Return the precision that "auto" means for a model of these sizes on a CPU."""
    is_large = config.effective_target_vocab_size * config.d_model >= INT8_MIN_PROJECTION
    return "int8" if is_large and fits_int8(config) else "float32"


def _make_one(model: Bundle | Transformer, precision: str) -> Engine:
    from ..bundle import Bundle
    from .unread_bundle import UnreadBundle

    on_cpu = isinstance(model, UnreadBundle) or _is_on_cpu(model)
    is_own = isinstance(model, Bundle) and bool(model.builder)  # a function of the user's made it, not in C
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
    """Return `nn/` as an engine; on a CUDA GPU with graphs, if they compute the same."""
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
    """Return the engine in C for a model in memory; if it computes otherwise, warn and return None."""
    from ..fast.comparison import describe_change
    from ..nn.weights import weight_buffers
    from .comparison import difference_from_nn

    weights = weight_buffers(model)
    try:
        engine = NativeEngine(model.config, weights, precision)
        difference = difference_from_nn(engine, weights, model)
    except ConfigError as error:  # parts that the config does not describe
        difference = str(error)
    if not difference:
        return engine
    warnings.warn(f"{describe_change(model)} (the engine in C: {difference})", SlowerEngineWarning, stacklevel=4)
    return None


def _is_on_cpu(model: Bundle | Transformer) -> bool:
    from ..bundle import Bundle

    parameters = (model.model if isinstance(model, Bundle) else model).parameters()
    return next(parameters).device.type == "cpu"
