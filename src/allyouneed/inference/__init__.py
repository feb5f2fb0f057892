"""The model of `nn/` written for translating: the same logits, in less time."""

from .eager import EagerEngine
from .engine import AnyEngine, Engine, EngineStep, Precision
from .ensemble import EnsembleEngine
from .kv_cache import CachedState
from .selection import (
    Compiled,
    SlowerEngineWarning,
    choose_engine,
    compile_kernels,
    make_engine,
    make_ensemble,
    pick_precision,
)

__all__ = [
    "AnyEngine",
    "CachedState",
    "Compiled",
    "EagerEngine",
    "Engine",
    "EngineStep",
    "EnsembleEngine",
    "Precision",
    "SlowerEngineWarning",
    "choose_engine",
    "compile_kernels",
    "make_engine",
    "make_ensemble",
    "pick_precision",
]
