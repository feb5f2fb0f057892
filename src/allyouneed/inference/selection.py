"""Which engine and which precision a model gets."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, cast, get_args

from ..errors import ConfigError, MissingExtraError
from ..fast.custom_parts import find_custom_part
from ..nn.transformer import Transformer
from .auto_engine import AutoEngine, can_auto_compile
from .current_engine import CurrentEngine
from .dispatch import int8_pays
from .eager import EagerEngine
from .engine import AnyEngine, Precision, UnchangedEngine
from .ensemble import EnsembleEngine
from .quantization import supports_int8

Compiled = bool | Literal["auto"]


def make_engine(model: Transformer, *, precision: str = "float32", compiled: Compiled = False) -> AnyEngine:
    """The engine for `model` with weights in `precision`, "float32" or "int8".

    `compiled=True` needs the extra `fast`, a CPU, and half a minute the first time; "auto" takes compiled code where
    it pays and as soon as it is there (auto_engine.py). A model with a part of its own (a subclass, a forward
    hook; custom_parts.py) is run by its own `start` and `step`, in float32; for such a model int8 and `compiled` are
    refused.
    """
    if precision not in get_args(Precision):
        raise ConfigError(f'precision must be "auto", "float32" or "int8"; got {precision!r}')
    if compiled not in (True, False, "auto"):
        raise ConfigError(f'compiled must be True, False or "auto"; got {compiled!r}')
    if custom := find_custom_part(model):
        if compiled is True or precision == "int8":
            raise ConfigError(
                f"{custom}, which {'compiled=True' if compiled is True else 'int8'} does not know; "
                'use precision "float32" without compiled'
            )
        return UnchangedEngine(model)
    if compiled == "auto" and can_auto_compile(model, cast(Precision, precision)):
        return AutoEngine(model, precision=cast(Precision, precision))
    if compiled is not True:
        return EagerEngine(model, precision=cast(Precision, precision))
    try:
        from .compiled import make_compiled_engine
    except ImportError:
        raise MissingExtraError("compiled code", "fast") from None
    except RuntimeError as error:  # Numba finds no folder for what it compiles
        raise ConfigError(f"compiled=True: {error}; set NUMBA_CACHE_DIR to a folder that can be written") from error
    return make_compiled_engine(model, precision=cast(Precision, precision))


def make_ensemble(
    models: Sequence[Transformer], *, precision: str = "float32", compiled: Compiled = False
) -> AnyEngine:
    """One engine for several models, each prepared as `make_engine` does, and again when its weights have changed."""
    make = partial(make_engine, precision=precision, compiled=compiled)
    engines = [CurrentEngine(model, make) for model in models]
    return EnsembleEngine(engines) if len(engines) > 1 else engines[0]


def pick_precision(*models: Transformer) -> Precision:
    """What "auto" means: int8 if that suits all models, else float32."""
    return "int8" if all(map(_int8_suits, models)) else "float32"


def _int8_suits(model: Transformer) -> bool:
    """Whether int8 is faster: on an x86 processor if the projection is large enough (dispatch.py).

    A model with parts of its own stays float32.
    """
    table = model.projection.table
    return not find_custom_part(model) and supports_int8(table.device) and int8_pays(table.numel())
