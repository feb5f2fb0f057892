"""Which engine and which precision a model gets."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast, get_args

import torch

from ..config import ModelConfig
from ..errors import AllYouNeedError, ConfigError, MissingExtraError
from ..interpreter import is_installed
from ..nn.transformer import Transformer
from .comparison import (
    FLOAT_TOLERANCE,
    INT8_TOLERANCE,
    compare_engine,
    describe_change,
    first_steps,
    many_steps,
)
from .definition import ForwardEngine, StepEngine
from .eager import EagerEngine
from .engine import AnyEngine, Compiled, Precision
from .ensemble import EnsembleEngine
from .measured import KERNELS, PYTORCH, EngineSpeed, MakeEngine, fastest, measure, read_speeds
from .quantization import supports_int8

INT8_MIN_PROJECTION = 1_000_000
"""Weights of the projection from which "auto" means int8: four megabytes in float32, read anew for every token.

The model alone decides, so that a model translates with the same weights on every x86 processor.
"""


DETAIL = " (the engine "  # what follows is another number for every model, so a warning leaves it out


class SlowerEngineWarning(UserWarning):
    """Another engine computes than was meant, because that one differs from the definition."""


def make_engine(model: Transformer, *, precision: str = "float32", compiled: Compiled = False) -> AnyEngine:
    """As `choose_engine`; why another engine computes than was meant is a warning."""
    engine, reason = choose_engine(model, precision=precision, compiled=compiled)
    if reason:
        warnings.warn(reason.partition(DETAIL)[0], SlowerEngineWarning, stacklevel=2)
    return engine


def make_ensemble(
    models: Sequence[Transformer], *, precision: str = "float32", compiled: Compiled = False
) -> AnyEngine:
    """One engine for several models, each prepared as `make_engine` does."""
    engines = [make_engine(model, precision=precision, compiled=compiled) for model in models]
    return EnsembleEngine(engines) if len(engines) > 1 else engines[0]


def choose_engine(
    model: Transformer, *, precision: str = "float32", compiled: Compiled = False
) -> tuple[AnyEngine, str]:
    """The engine for `model` with weights in `precision`, "float32" or "int8", and why it is a slower one, if it is.

    `compiled=True` needs the extra `fast`, a CPU, and half a minute the first time; "auto" takes compiled kernels where
    they pay and are in this machine's cache. Before an engine is used, the first steps of a search are computed by it
    and by `Transformer.forward`, and 70 steps of the first layers alone; if they differ beyond rounding, the model
    itself computes, in float32.
    """
    if precision not in get_args(Precision):
        raise ConfigError(f'precision must be "auto", "float32" or "int8"; got {precision!r}')
    if compiled not in (True, False, "auto"):
        raise ConfigError(f'compiled must be True, False or "auto"; got {compiled!r}')
    kind = _engine_class(model, cast(Precision, precision), compiled)
    searches = [(model, first_steps(model)), many_steps(model)]

    def difference(make: Callable[[Transformer], AnyEngine], tolerance: float = FLOAT_TOLERANCE) -> str:
        reasons = (compare_engine(make(part), searched, tolerance=tolerance) for part, searched in searches)
        return next(filter(None, reasons), "")

    if reason := difference(StepEngine):
        return ForwardEngine(model), f"Transformer.step {reason}; Transformer.forward computes every step, slowly"
    try:
        reason = difference(EagerEngine)
        eager, fast = EagerEngine(model), kind(model, precision=cast(Precision, precision))
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        reason = f"knows no such model ({type(error).__name__}: {error})"
    if reason:
        return StepEngine(model), f"{describe_change(model)}{DETAIL}{reason})"
    if type(fast) is EagerEngine and precision == "float32":
        return fast, ""
    tolerance = INT8_TOLERANCE if precision == "int8" else FLOAT_TOLERANCE
    if reason := difference(lambda part: kind(part, precision=cast(Precision, precision)), tolerance):
        name = f"{precision}{', compiled,' * fast.compiled}"
        return eager, f"{name} {reason}; PyTorch computes in float32, more slowly"
    return fast, ""


def _engine_class(model: Transformer, precision: Precision, compiled: Compiled) -> type[EagerEngine]:
    """Refuses compiled code that is asked for and cannot be."""
    device = model.projection.table.device
    if compiled == "auto":
        compiled = kernels_pay(model.config, precision, device) and kernels_are_compiled(precision)
    if not compiled:
        return EagerEngine
    if device.type != "cpu":
        raise ConfigError(f"compiled=True is for a CPU; the model is on {device}")
    return _compiled_class(precision)


def _compiled_class(precision: Precision) -> type[EagerEngine]:
    try:
        from .compiled import CompiledEngine, CompiledInt8Engine
    except ImportError:
        raise MissingExtraError("compiled code", "fast") from None
    except RuntimeError as error:  # Numba finds no folder for what it compiles
        raise ConfigError(f"compiled=True: {error}; set NUMBA_CACHE_DIR to a folder that can be written") from error
    return CompiledInt8Engine if precision == "int8" else CompiledEngine


def kernels_pay(config: ModelConfig, precision: Precision, device: torch.device) -> bool:
    """Whether compiled kernels translate faster: as timed on this machine; where they were not, in int8."""
    if device.type != "cpu" or not is_installed("numba"):
        return False
    speeds = read_speeds(config, precision)
    return fastest(speeds) == KERNELS if KERNELS in speeds else precision == "int8"


def kernels_are_compiled(precision: Precision) -> bool:
    """Whether the kernels are in this machine's cache."""
    try:
        from .kernel_cache import is_compiled
    except (ImportError, RuntimeError):  # Numba refuses the versions, or finds no folder for what it compiles
        return False
    return is_compiled(precision)


def compile_kernels(
    config: ModelConfig, announce: Callable[[str], None], *, precision: str = "auto", device: torch.device | None = None
) -> None:
    """Compile the kernels that models like this one may translate with, and time the engines, once for a machine.

    `announce` gets a line if kernels are compiled.
    """
    device = device or torch.device("cpu")
    if device.type != "cpu" or precision not in ("auto", *get_args(Precision)):  # `choose_engine` refuses it
        return
    usual: Precision = "int8" if _int8_suits(config, device) else "float32"
    chosen = usual if precision == "auto" else cast(Precision, precision)
    if is_installed("numba") and not kernels_are_compiled(chosen):
        announce("Compiling the kernels for translating, once for this machine; up to half a minute.")
        try:
            from . import kernel_cache

            kernel_cache.fill_kernel_cache(chosen)
        except (ImportError, RuntimeError) as error:
            announce(f"They are not compiled ({error}); PyTorch translates, more slowly.")
    time_engines(config, chosen)


def time_engines(config: ModelConfig, precision: Precision) -> dict[str, EngineSpeed]:
    """How fast each engine translates on this machine's CPU with models of these sizes, compiled ones if they are."""
    engines: dict[str, MakeEngine] = {}
    if precision == "float32" or supports_int8(torch.device("cpu")):
        engines[PYTORCH] = partial(EagerEngine, precision=precision)
    if kernels_are_compiled(precision):
        engines[KERNELS] = partial(_compiled_class(precision), precision=precision)
    return measure(config, precision, engines)


def pick_precision(*models: Transformer) -> Precision:
    """What "auto" means: int8 if that suits all models, else float32."""
    return "int8" if all(_int8_suits(model.config, model.projection.table.device) for model in models) else "float32"


def _int8_suits(config: ModelConfig, device: torch.device) -> bool:
    return supports_int8(device) and config.effective_target_vocab_size * config.d_model >= INT8_MIN_PROJECTION
