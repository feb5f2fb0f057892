"""Estimate how long a run will take on this machine, from a few updates of a copy, and suggest a time budget."""

import time
from collections.abc import Iterable
from copy import deepcopy
from functools import partial
from itertools import islice
from math import ceil

import torch

from ..config import TrainConfig
from ..data.batch import Batch
from ..fast.micro_batches import MicroBatches
from ..fast.passes import choose_loss
from ..nn import Transformer
from ..train.gradients import add_gradients
from .budget import VALIDATION_SHARE
from .hooks import OptimizerFactory
from .setup import Setup

MOST_SECONDS = 5.0
LAST_SHARE = 0.08  # share of a time budget for the last validation and the scores of test pairs: a guess


def seconds_per_update(
    model: Transformer, batches: Iterable[Batch], config: TrainConfig, make_optimizer: OptimizerFactory
) -> float:
    """Measure the mean time of an update in seconds. Neither the model nor the random numbers change."""
    copy = deepcopy(model).train()
    optimizer = make_optimizer(copy, config)
    gradients = MicroBatches(partial(add_gradients, loss_of=choose_loss(copy, config)[0]))
    device = next(model.parameters()).device
    times: list[float] = []
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        for batch in islice(batches, 9):
            begin = time.perf_counter()
            gradients(copy, [batch], config)
            optimizer.step()
            optimizer.zero_grad()
            if cuda:
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - begin)
            if sum(times) > MOST_SECONDS:
                break
    measured = times[len(times) // 3 :]  # without the first updates, which also allocate memory and choose kernels
    return config.accumulate_steps * sum(measured) / len(measured)


def format_duration(seconds: float) -> str:
    """Format a duration, rounded, in a suitable unit."""
    if seconds < 1.5:
        return "a second" if seconds >= 0.5 else "less than a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86_400:.1f} days"


def describe_time(setup: Setup) -> list[tuple[str, str]]:
    """Describe how long a run without a time budget takes. If it takes minutes, also suggest a budget.

    Returns topics and lines.
    """
    settings = setup.recipe.train
    seconds = _measure(setup)
    whole = seconds * settings.steps
    duration = (
        "time",
        f"about {format_duration(whole)} for {settings.steps:,} updates of {seconds:.3g} seconds, measured now; "
        "validation takes additional time",
    )
    if whole < 60:
        return [duration]
    share = 1 - VALIDATION_SHARE - LAST_SHARE
    minutes = ceil(whole / share / 60)
    epochs = _epochs(setup, int(60 * minutes * share / seconds))
    return [
        duration,
        (
            "budget",
            f"--minutes {minutes} would suit this: {epochs:.3g} epochs of {len(setup.data.train):,} pairs, "
            "with validations and final scores; the run then ends on time, however busy the machine is",
        ),
        (
            "budget",
            f"--minutes {2 * minutes} would buy {2 * epochs:.3g} epochs. By a rule of thumb every doubling gains less "
            "than the one before it, and none once the validation score has stopped rising; see metrics.jsonl",
        ),
    ]


def describe_plan(setup: Setup) -> list[tuple[str, str]]:
    """Describe what a run would do: its updates, time and size of the model, as topics and lines."""
    settings = setup.recipe.train
    size = f"weights of {setup.model.config.weight_bytes / 1e6:.3g} MB"
    if not settings.minutes:
        lines = describe_time(setup)
        return [*lines, ("plan", f"{settings.steps:,} updates, {_epochs(setup, settings.steps):.3g} epochs; {size}")]
    used = setup.hooks.stopwatch.seconds()
    seconds = _measure(setup)
    left = max(0.0, (60 * settings.minutes_each - used) * (1 - VALIDATION_SHARE - LAST_SHARE))
    steps = min(settings.steps, int(left / seconds))
    shared = f"each of {settings.ensemble} models has " if settings.ensemble > 1 else ""
    return [
        (
            "plan",
            f"{shared}about {steps:,} updates of {seconds:.3g} seconds, measured now: "
            f"{_epochs(setup, steps):.3g} epochs; {size}",
        ),
        (
            "plan",
            f"of {settings.minutes_each:g} minutes, {format_duration(used)} are used to prepare, "
            f"{format_duration(left)} are for updates, the rest for validations and final scores",
        ),
    ]


def _measure(setup: Setup) -> float:
    settings = setup.recipe.train
    batches = setup.data.batches(settings, part=(0, setup.cores.processes(setup.cores.first)))
    return seconds_per_update(setup.model, batches, settings, setup.hooks.optimizer)


def _epochs(setup: Setup, steps: int) -> float:
    """Return how many epochs this number of updates makes, not counting padding."""
    tokens_of_update = setup.recipe.train.batch_tokens * setup.recipe.train.accumulate_steps
    return steps * tokens_of_update / setup.data.train.epoch_tokens()
