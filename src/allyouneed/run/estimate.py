"""How long a run will take on this machine, measured on a few updates of a copy of the model."""

import time
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import islice

import torch
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from ..train.loop import add_gradients
from ..train.recovery import with_fitting_micro_batches

MOST_SECONDS = 5.0


def seconds_per_update(
    model: Transformer,
    batches: Iterable[Batch],
    config: TrainConfig,
    make_optimizer: Callable[[Transformer, TrainConfig], Optimizer],
) -> float:
    """The mean time of a few updates in seconds; neither the model nor the random numbers change."""
    copy = deepcopy(model).train()
    optimizer = make_optimizer(copy, config)
    device = next(model.parameters()).device
    times: list[float] = []
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        for batch in islice(batches, 9):
            begin = time.perf_counter()
            with_fitting_micro_batches(add_gradients, copy, [batch], config, micro_batches=1)
            optimizer.step()
            optimizer.zero_grad()
            if cuda:
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - begin)
            if sum(times) > MOST_SECONDS:
                break
    measured = times[len(times) // 3 :]  # the first updates also allocate memory and choose kernels
    return config.accumulate_steps * sum(measured) / len(measured)


def format_duration(seconds: float) -> str:
    """A duration in the unit that suits it, rounded."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86_400:.1f} days"
