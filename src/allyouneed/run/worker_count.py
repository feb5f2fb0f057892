"""How many processes share the batches of a run, and from which size of a run on more than one pays."""

import os

from ..config import TrainConfig
from ..errors import ConfigError
from ..nn import Transformer
from .processes import started_by_torchrun

# A worker pays if its part of an update has at least so many parameters × tokens. The part of its time that does not
# depend on the number of tokens, about 3 ms with d_model 64, is then at most a third.
MIN_UPDATE = 4e7
# A run of fewer updates, or of fewer parameters × tokens in all, is done before a second process has started.
FEWEST_UPDATES, MIN_RUN = 50, 1e11


def most_workers(config: TrainConfig, threads: int, *, is_standard: bool) -> int:
    """How many workers a run on a CPU can have, before its model is known; `is_standard` as in `choose_workers`."""
    if started_by_torchrun():
        return int(os.environ["WORLD_SIZE"])
    if config.workers != "auto":
        return config.workers
    return threads if is_standard and _can_share_memory() else 1


def choose_workers(config: TrainConfig, model: Transformer, *, threads: int, is_standard: bool) -> tuple[int, str]:
    """The number of workers of a run, and why; `is_standard`: the optimizer is made by `build_optimizer`.

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
    return count, f"{count} processes share every batch (train.workers=1: one process)"


def _can_share_memory() -> bool:
    return hasattr(os, "memfd_create")
