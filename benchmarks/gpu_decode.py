"""Translating on a GPU: tokens a second in each precision, with and without CUDA graphs, and checks of both."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from allyouneed import ModelConfig, Transformer
from allyouneed.decode import BeamOptions, SearchLimits, beam_search, greedy_search
from allyouneed.translator.definition import DefinitionEngine
from allyouneed.translator.static_step import StaticEngine, find_difference

BANNED = (0, 1, 2)  # padding, start and end: every translation has the same length


class Speed(NamedTuple):
    """Tokens a second of searches of some sentences with some beam."""

    engine: str
    sentences: int
    beam: int
    tokens_per_second: float


def engines(model: Transformer) -> Iterator[tuple[str, DefinitionEngine]]:
    """Make each engine that this device has, with its name."""
    on_gpu = next(model.parameters()).is_cuda
    for precision in ("float32", "bfloat16") if on_gpu else ("float32",):
        yield precision, DefinitionEngine(model, precision)
        yield f"{precision}, {'graphs' if on_gpu else 'static'}", StaticEngine(model, precision)


def search(engine: DefinitionEngine, sources: list[list[int]], beam: int, length: int) -> list[list[int]]:
    """Find `length` tokens for each source."""
    step = engine.start(sources, banned_ids=BANNED)
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=[length] * len(sources))
    if beam == 1:
        return [found.ids for found in greedy_search(step, limits)]
    return [best.ids for best, *_ in beam_search(step, limits, BeamOptions(beam=beam, alpha=0.0))]


def measure_decoding(
    config: ModelConfig, device: torch.device, wait: Callable[[], None], *, length: int = 30, repeats: int = 3
) -> Iterator[Speed | str]:
    """Yield the speed of each engine, and a sentence where the ids differ from those in float32 without graphs."""
    torch.manual_seed(1)
    model = Transformer(config).eval().to(device)
    rng = np.random.default_rng(1)
    counts = (1, 128) if device.type == "cuda" else (1, 3)
    sources = {
        count: [rng.integers(3, config.vocab_size, n).tolist() for n in np.linspace(10, 40, count, dtype=int)]
        for count in counts
    }
    exact: dict[tuple[int, int], list[list[int]]] = {}
    for name, engine in engines(model):
        if isinstance(engine, StaticEngine) and (difference := find_difference(engine)):
            yield f"{name}: {difference}"
            continue
        for count, beam in product(counts, (1, 4)):
            seconds, ids = _best_time(partial(search, engine, sources[count], beam, length), wait, repeats)
            yield Speed(name, count, beam, count * length / seconds)
            same = sum(map(list.__eq__, ids, exact.setdefault((count, beam), ids)))
            if same < count:
                yield f"{name}, {count} sentences, beam {beam}: {same} outputs of {count} as in float32"


def _best_time(work: Callable[[], Any], wait: Callable[[], None], repeats: int) -> tuple[float, Any]:
    """Measure the least time after a first call, in seconds; also return the result."""
    times, result = [], work()
    for _ in range(repeats):
        wait()
        begin = time.perf_counter()
        result = work()
        wait()
        times.append(time.perf_counter() - begin)
    return min(times), result
