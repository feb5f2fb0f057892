"""How fast this machine trains: tokens per minute, by the width of the model.

The speed decides how wide a model a time budget allows, and how often the pairs are repeated.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from threading import Barrier
from typing import Any

import torch

from ..config import ModelConfig, TrainConfig
from ..data.batch import Batch
from ..fast.loss import projected_loss
from ..machine.device import using_threads
from ..machine.files import parse_json, to_json, write_whole
from ..train.gradients import add_gradients
from ..younger import build_model
from ..younger.muon import build_optimizer
from .choice_rules import BUDGET_SIZES, has_time_for

MODEL = ModelConfig(vocab_size=4_000, heads=4, positions="rotary", query_key_norm=True)
SENTENCES, LENGTH = 32, 33  # a batch of 1,024 tokens to predict
# WARM_UP updates are not timed. Then at least FEWEST updates are timed, for at least SECONDS.
WARM_UP, FEWEST, SECONDS = 1, 3, 0.3
MORE_WORKERS = 0.6  # each further worker adds this share of a worker's speed: docs/measured/training-speed.md
# Workers wait for the slowest one: a worker counts only if other programs leave it this share of a core.
CORE_SHARE = 0.75
ROUNDS, ROUND_SECONDS, SIDE = 5, 0.1, 160  # for measuring free cores with products of square matrices of this size
SPEED = "speed.json"  # in the folder of a run


def recorded_speed(folder: Path, minutes: float, workers: int) -> dict[int, float]:
    """Return the speed with as many workers as have a free core: as recorded in the run's folder, or measured now.

    Recording it makes the same choice if a run is started again before it has begun to train.
    """
    path, conditions = folder / SPEED, {"minutes": minutes, "workers": workers}
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        recorded = parse_json(path.read_bytes())
        speed = {int(width): float(tokens) for width, tokens in recorded["tokens_per_minute"].items()}
        if recorded["conditions"] == conditions and min(speed.values()) > 0:
            return speed
    speed = measure_speed(minutes, min(workers, max(1, int(free_cores(workers) / CORE_SHARE))) if workers > 1 else 1)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_json({"conditions": conditions, "tokens_per_minute": speed}) + "\n")
    return speed


@cache
def free_cores(threads: int) -> float:
    """Estimate how many cores this machine has free for this many threads, within about a second.

    One thread is timed by itself, then all threads together. The estimate is the number of threads, times the speed of
    the slowest thread as a share of the speed of the single thread.
    """
    shares = []
    with using_threads(1):
        for _ in range(ROUNDS):
            (alone,), together = _count_products(1), _count_products(threads)
            shares.append(threads * min(together) / max(1, alone))
    return round(min(threads, median(shares)), 1)


def _count_products(threads: int) -> list[int]:
    """Count the matrix products that each thread computes in `ROUND_SECONDS`, with all threads at the same time."""
    start = Barrier(threads)

    def count(_: int) -> int:
        torch.set_num_threads(1)
        square, done = torch.ones(SIDE, SIDE), 0
        start.wait()
        end = time.perf_counter() + ROUND_SECONDS
        while time.perf_counter() < end:
            square @ square
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(count, range(threads)))


def measure_speed(minutes: float, workers: int, now: Callable[[], float] = time.perf_counter) -> dict[int, float]:
    """Measure how many tokens this machine trains on in a minute, by d_model.

    The models of `BUDGET_SIZES` are tried from the narrowest up, until a model needs more than `minutes`. This takes a
    few seconds on one thread, and does not change the caller's random numbers. `now` is a clock.
    """
    speed = dict[int, float]()
    for width, layers in BUDGET_SIZES.items():
        model = replace(MODEL, d_model=width, d_ff=4 * width, encoder_layers=layers, decoder_layers=layers)
        tokens = SENTENCES * (LENGTH - 1) * 60 / _seconds_an_update(model, now)
        speed[width] = round(tokens * (1 + MORE_WORKERS * (workers - 1)))
        if not has_time_for(width, minutes * speed[width]):
            break
    return speed


def _seconds_an_update(config: ModelConfig, now: Callable[[], float]) -> float:
    with torch.random.fork_rng(devices=[]), using_threads(1):
        ids = torch.randint(1, config.vocab_size, (2, SENTENCES, LENGTH))
        # as when the bounds of the rules were measured: by the modules, and narrow models in float32
        precision: Any = "auto" if config.d_model >= 128 else "float32"
        batch, train = Batch(ids[0], ids[1]), TrainConfig(optimizer="muon", precision=precision, steps=1)
        model = build_model(config).train()
        optimizer, times = build_optimizer(model, train), list[float]()
        while len(times) < WARM_UP + FEWEST or sum(times[WARM_UP:]) < SECONDS:
            begin = now()
            add_gradients(model, [batch], train, projected_loss)
            optimizer.step()
            optimizer.zero_grad()
            times.append(now() - begin)
    return median(times[WARM_UP:])


def describe_speed(speed: Mapping[int, float]) -> str:
    """Describe the speed in one line."""
    widths = ", ".join(f"{tokens:,.0f} with d_model={width}" for width, tokens in speed.items())
    return f"tokens that this machine trains on in a minute: {widths}"
