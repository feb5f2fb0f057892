"""The kernels in Numba's cache on disk: compiled once for a machine, and loaded by each later process in a second."""

import hashlib
import os
import sys
from pathlib import Path

import llvmlite
import numba
import torch

from ..config import ModelConfig
from ..machine_notes import VARIABLES
from ..younger import build_model
from . import kernels
from .compiled import CompiledEngine, CompiledInt8Engine
from .engine import AnyEngine, EngineStep, Precision


def is_compiled(precision: Precision) -> bool:
    """Whether `fill_kernel_cache` has finished here with these kernels, this processor and this Numba."""
    return _marker(precision).exists()


def fill_kernel_cache(precision: Precision) -> None:
    """Compile all kernels, by translating with a tiny model; half a minute, less if they are cached.

    They serve models of any size; int8 and float32 weights have kernels of their own.
    """
    sizes = ModelConfig(vocab_size=80, d_model=8, d_ff=8, heads=2, max_length=8, encoder_layers=1, decoder_layers=1)
    kind = CompiledInt8Engine if precision == "int8" else CompiledEngine
    _translate_once(kind(build_model(sizes).eval(), precision=precision))
    _marker(precision).touch()


@torch.inference_mode()
def _translate_once(engine: AnyEngine) -> None:
    """Call every kernel once with every combination of types."""
    step = EngineStep(engine, banned_ids=(0,))
    for source in (torch.tensor([[1, 2]]), torch.tensor([[1, 2], [1, 0]])):
        for width in (1, 2):
            rows = len(source) * width
            state = engine.start(source).reorder(torch.arange(len(source)).repeat_interleave(width))
            for _ in range(2):
                engine.step(torch.ones(rows, dtype=torch.int64), state)
                log_probabilities, state = step(torch.ones(rows, dtype=torch.int64), state)
                step.top_continuations([[0.0] * width] * len(source), log_probabilities, 2 * width)


def _marker(precision: Precision) -> Path:
    """An empty file in Numba's cache. Its name changes with everything that makes Numba compile again."""
    cache, source = Path(str(kernels.decode_tokens.stats.cache_path)), Path(kernels.__file__).stat()
    machine = (numba.__version__, llvmlite.__version__, llvmlite.binding.get_host_cpu_name(), os.cpu_count())
    held = [os.environ.get(name) for name in VARIABLES]
    provenance = repr((precision, source.st_mtime, source.st_size, sys.version_info[:2], machine, held))
    return cache / f"compiled-{hashlib.sha256(provenance.encode()).hexdigest()[:16]}"
