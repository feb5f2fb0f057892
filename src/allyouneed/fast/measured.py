"""How fast each engine translates with models of some sizes: timed once on a machine, and noted (machine_notes.py).

Engines of one precision give the same numbers but for rounding, so what was timed changes no result.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from time import perf_counter, thread_time
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import ModelConfig
from ..decode import SearchLimits, greedy_search
from ..device import available_cores, parallel_map, using_threads
from ..machine_notes import read_note, write_note
from ..nn.transformer import Transformer
from ..younger import build_model
from .comparison import varied_ids
from .engine import AnyEngine, EngineStep, Precision
from .uninitialized import UninitializedWeights

SENTENCES, LENGTH = 32, 4  # of a timed batch, and of each of its sources and targets, in tokens
TOKENS = 12  # of the target of one sentence, so that its steps take longer than reading its source
ROUNDS, SECONDS = 5, 0.5  # the quickest round counts; none begins after so many seconds
PYTORCH, KERNELS = "PyTorch", "compiled kernels"  # the engines

MakeEngine = Callable[[Transformer], AnyEngine]


class EngineSpeed(NamedTuple):
    """Seconds a token: of processor time for one sentence, and by the clock for a batch among 1, 2, 4, … threads."""

    sentence: float
    batch: tuple[float, ...]

    @property
    def threads(self) -> int:
        """The fewest threads among which a batch takes hardly longer than among any number of them."""
        return 1 << [seconds < 1.1 * min(self.batch) for seconds in self.batch].index(True)

    def __str__(self) -> str:
        """In a line."""
        batch = f"{1e3 * self.batch[self.threads.bit_length() - 1]:.2g} in a batch of {SENTENCES}"
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"{1e3 * self.sentence:.2g} ms a token for one sentence, {batch} by {threads}"


def read_speeds(config: ModelConfig, precision: Precision) -> dict[str, EngineSpeed]:
    """What was noted of models of these sizes, by engine; empty if nothing was."""
    with suppress(TypeError, ValueError):
        noted = read_note("speed", config, precision, available_cores()).items()
        speeds = {name: EngineSpeed(float(sentence), tuple(map(float, batch))) for name, (sentence, batch) in noted}
        if all(min(speed.sentence, *speed.batch) > 0 for speed in speeds.values()):
            return speeds
    return {}


def fastest(speeds: Mapping[str, EngineSpeed]) -> str:
    """The engine that is faster for one sentence and for a batch, or where it differs by the larger factor."""
    return min(speeds, key=lambda name: speeds[name].sentence * speeds[name].batch[0])


def measure(config: ModelConfig, precision: Precision, engines: Mapping[str, MakeEngine]) -> dict[str, EngineSpeed]:
    """The speeds of these engines, as noted; or timed, which takes a second or two, and noted."""
    speeds = read_speeds(config, precision)
    if not speeds.keys() >= engines.keys():
        with UninitializedWeights():
            model = build_model(config).eval()
        for weights in model.parameters():  # any numbers: random ones would take longer than to translate
            weights.data = torch.linspace(-0.1, 0.1, weights.numel()).view_as(weights)
        with using_threads(1):
            speeds = _time({name: make(model) for name, make in engines.items()}, config)
        write_note(speeds, "speed", config, precision, available_cores())
    return {name: speeds[name] for name in engines}


def _time(engines: Mapping[str, AnyEngine], config: ModelConfig) -> dict[str, EngineSpeed]:
    begin, rng, length = perf_counter(), torch.Generator().manual_seed(0), min(LENGTH, config.max_length)
    source = varied_ids(SENTENCES * length, config.vocab_size, config.pad_id, rng).view(SENTENCES, length)
    divisions = [1 << i for i in range(SENTENCES.bit_length()) if 1 << i <= available_cores()]
    for engine in engines.values():
        _seconds(engine, source[:1], 1)  # loads the kernels
    seconds = {name: [inf] * (1 + len(divisions)) for name in engines}
    for number in range(ROUNDS):
        if number and perf_counter() - begin > SECONDS:
            break
        for name, engine in engines.items():
            timed = [_seconds(engine, source[:1], 1), *(_seconds(engine, source, threads) for threads in divisions)]
            seconds[name] = list(map(min, seconds[name], timed))
    return {name: EngineSpeed(sentence, tuple(batch)) for name, (sentence, *batch) in seconds.items()}


def _seconds(engine: AnyEngine, source: Tensor, threads: int) -> float:
    """The seconds a token of a greedy search for targets that are as long as they may be."""
    eos_id, alone = engine.config.effective_target_vocab_size - 1, len(source) == 1
    tokens, clock = (TOKENS, thread_time) if alone else (LENGTH, perf_counter)
    tokens = min(tokens, engine.config.max_length)

    @torch.inference_mode()
    def search(part: Tensor) -> None:
        limits = SearchLimits(sos_id=0, eos_id=eos_id, max_lengths=torch.full((len(part),), tokens))
        greedy_search(EngineStep(engine, banned_ids=(eos_id,)), engine.start(part), limits)

    start = clock()
    with parallel_map(threads) as map_parts:
        list(map_parts(search, source.chunk(threads)))
    return (clock() - start) / (len(source) * tokens)
