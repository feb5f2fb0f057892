"""Compile the kernels into Numba's cache on disk: `python -m allyouneed.inference.warm_up int8`.

A later process on the same machine then loads the machine code in about a second, for models of any size. The argument
is the precision: int8 and float32 weights have kernels of their own.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import llvmlite
import numba
import torch

from ..config import ModelConfig
from ..errors import AllYouNeedError
from ..files import locked
from ..interpreter import python_command
from ..younger import build_model
from . import kernels
from .compiled import make_compiled_engine
from .engine import AnyEngine, EngineStep, Precision


def is_warm(precision: Precision) -> bool:
    """Whether `warm_up` has finished here with these kernels, this processor and this Numba."""
    return _marker(precision).exists()


def warm_up(precision: Precision) -> None:
    """Compile all kernels, by translating with a tiny model; half a minute, less if they are cached."""
    sizes = ModelConfig(vocab_size=80, d_model=8, d_ff=8, heads=2, max_length=8, encoder_layers=1, decoder_layers=1)
    model = build_model(sizes).eval()
    translate_once(make_compiled_engine(model, precision=precision))
    _marker(precision).touch()


@torch.inference_mode()
def translate_once(engine: AnyEngine) -> None:
    """Call every kernel once with every combination of types, so that all are compiled, or loaded from the cache."""
    step = EngineStep(engine, banned_ids=(0,))
    for source in (torch.tensor([[1, 2]]), torch.tensor([[1, 2], [1, 0]])):
        for width in (1, 2):
            rows = len(source) * width
            state = engine.start(source).reorder(torch.arange(len(source)).repeat_interleave(width))
            for _ in range(2):
                engine.step(torch.ones(rows, dtype=torch.int64), state)
                log_probabilities, state = step(torch.ones(rows, dtype=torch.int64), state)
                step.top_continuations([[0.0] * width] * len(source), log_probabilities, 2 * width)


def start_in_background(precision: Precision) -> "subprocess.Popen[bytes]":
    """Start a process of the lowest priority that warms up and outlives this one; if one is at it, it ends at once."""
    command = python_command("allyouneed.inference.warm_up", precision)
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def _marker(precision: Precision) -> Path:
    """An empty file in Numba's cache. Its name changes with everything that makes Numba compile again."""
    cache, source = Path(str(kernels.decode_tokens.stats.cache_path)), Path(kernels.__file__).stat()
    machine = (numba.__version__, llvmlite.__version__, llvmlite.binding.get_host_cpu_name(), os.cpu_count())
    provenance = repr((precision, source.st_mtime, source.st_size, sys.version_info[:2], machine))
    return cache / f"warm-{hashlib.sha256(provenance.encode()).hexdigest()[:16]}"


def main(precision: str) -> None:
    """What the command does."""
    if hasattr(os, "nice"):
        os.nice(19)
    torch.set_num_threads(1)
    marker = _marker(cast(Precision, precision))
    marker.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(marker.with_name("warm-up"), what="the compiled kernels"):
            warm_up(cast(Precision, precision))
    except AllYouNeedError:  # another process is at it
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
