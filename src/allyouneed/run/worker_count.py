"""How many processes share the batches of a run, and from which size of a run on more than one pays."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from statistics import median
from threading import Barrier

import torch

from ..config import TrainConfig
from ..device import using_threads
from ..errors import ConfigError
from ..nn import Transformer
from .processes import started_by_torchrun

# A worker pays if its part of an update has at least so many parameters × tokens. The part of its time that does not
# depend on the number of tokens, about 3 ms with d_model 64, is then at most a third.
MIN_UPDATE = 4e7
# A run of fewer updates, or of fewer parameters × tokens in all, is done before a second process has started.
FEWEST_UPDATES, MIN_RUN = 50, 1e11
# Workers wait for the slowest one: each must have this share of a core, beside what else the machine does.
CORE_SHARE = 0.75
ROUNDS, ROUND_SECONDS, SIDE = 5, 0.1, 160  # of the measurement, whose products are of square matrices


@cache
def measured_cores(threads: int) -> float:
    """How many cores this machine has for so many threads at this moment, measured once, within about a second.

    The slowest thread counts, times their number, in what one thread alone computes in the same time.
    """
    shares = []
    with using_threads(1):
        for _ in range(ROUNDS):
            (alone,), together = _count_products(1), _count_products(threads)
            shares.append(threads * min(together) / max(1, alone))
    return round(min(threads, median(shares)), 1)


def most_workers(config: TrainConfig, threads: int, *, is_standard: bool) -> int:
    """How many workers a run on a CPU can have, before its model is known; `is_standard` as in `choose_workers`."""
    if started_by_torchrun():
        return int(os.environ["WORLD_SIZE"])
    if config.workers != "auto":
        return config.workers
    return threads if is_standard and _can_share_memory() else 1


def choose_workers(
    config: TrainConfig,
    model: Transformer,
    *,
    threads: int,
    is_standard: bool,
    cores: Callable[[int], float] = measured_cores,
) -> tuple[int, str]:
    """The number of workers of a run, and why; `is_standard`: the optimizer is made by `build_optimizer`.

    `cores` measures how many cores the machine has for a number of threads; only where more than one worker would pay.
    Refuses a number that this process cannot start.
    """
    if started_by_torchrun():
        count = int(os.environ["WORLD_SIZE"])
        return count, f"{count} processes of torchrun share every batch"
    on_cpu = next(model.parameters()).device.type == "cpu"
    can_start = on_cpu and is_standard and _can_share_memory()
    if config.workers != "auto":
        if config.workers > 1 and not can_start:
            raise ConfigError(
                f"train.workers={config.workers} needs Linux, a CPU as device and the built-in optimizers; "
                "set train.workers=1, or start the workers with torchrun"
            )
        return config.workers, f"{config.workers}, as set"
    parameters = sum(parameter.numel() for parameter in model.parameters())
    update = parameters * config.batch_tokens * config.accumulate_steps
    count = max(1, min(threads, int(update / MIN_UPDATE)))
    is_short = config.steps < FEWEST_UPDATES or update * config.steps < MIN_RUN
    if not can_start or count == 1 or is_short:
        return 1, ""
    if (fitting := int(cores(threads) / CORE_SHARE)) < 2:
        return 1, f"one process: {threads} would wait for each other on what is free, {cores(threads):g} cores"
    count = min(count, fitting)
    return count, f"{count} processes share every batch (train.workers=1: one process)"


def _count_products(threads: int) -> list[int]:
    """How many products of matrices each of some threads computes in `ROUND_SECONDS`, all at the same time."""
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


def _can_share_memory() -> bool:
    return hasattr(os, "memfd_create")
