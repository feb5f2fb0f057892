"""The processes of a run: the workers that it starts on this machine, or those that torchrun has started.

A run is prepared by the first worker. It then gives the others a `Task`; these open the prepared pairs and the
checkpoint, and train with it.
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from ..config import Recipe, TrainConfig
from ..errors import ConfigError, TrainingError
from ..nn import Transformer
from ..train.workers import WorkerGroup, Workers

# Parameters × tokens of an update, for each worker, from which it pays. The part of its time that does not depend on
# the number of tokens, about 3 ms of a model of 64 dimensions, is then at most a third.
MIN_UPDATE = 4e7
# Updates, and parameters × tokens of all updates: less is done before a second process has started.
FEWEST_UPDATES, MIN_RUN = 50, 1e11

TIMEOUT = timedelta(hours=12)  # for a validation, during which the other workers wait
LAST_SECONDS = 10  # that a worker has to end
LOST_OTHERS = 3  # the exit code of a worker that another one has left


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker needs to take part in a run."""

    recipe: Recipe
    output: Path
    data_folder: Path
    threads: int
    is_finished: bool = False


def choose_workers(config: TrainConfig, model: Transformer, *, threads: int, is_standard: bool) -> tuple[int, str]:
    """The number of workers of a run, and why; `is_standard`: the optimizer is made by `make_optimizer`.

    Refuses a number that this process cannot start.
    """
    if started_by_torchrun():
        count = int(os.environ["WORLD_SIZE"])
        return count, f"{count} processes of torchrun share every batch"
    on_cpu = next(model.parameters()).device.type == "cpu"
    can_start = on_cpu and is_standard and hasattr(os, "memfd_create")
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


def started_by_torchrun() -> bool:
    """Whether torchrun, or a program like it, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def is_follower() -> bool:
    """Whether this process takes part in a run that another one directs."""
    return started_by_torchrun() and os.environ["RANK"] != "0"


def was_restarted() -> bool:
    """Whether torchrun has started all workers again, because one has failed."""
    return started_by_torchrun() and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def group_of_torchrun() -> Iterator[None]:
    """The group of the processes that torchrun has started, if it has, inside the block."""
    if not started_by_torchrun():
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        with process_group("env://", rank=-1, count=-1):
            yield
    except RuntimeError as error:
        if "gloo" not in str(error):
            raise
        raise TrainingError(
            "another worker of this run has ended; the same command with --resume continues from the last checkpoint"
        ) from error


@contextmanager
def running_workers(count: int, *, threads: int) -> Iterator[Workers]:
    """The workers of a run, of which this process is the first: `count` that are started, or those of torchrun."""
    if started_by_torchrun():
        yield WorkerGroup()
    elif count == 1:
        yield Workers()
    else:
        with tempfile.TemporaryDirectory() as folder, _helpers(Path(folder, "store"), count, threads) as helpers:
            try:
                _wait_until_ready(helpers)
                with process_group(f"file://{folder}/store", rank=0, count=count):
                    yield WorkerGroup()
            except RuntimeError as error:
                if reason := _reason(helpers):
                    raise TrainingError(reason) from error
                raise


@contextmanager
def process_group(address: str, *, rank: int, count: int) -> Iterator[None]:
    """The default group of `torch.distributed` inside the block."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, rank, count = next(iter(rendezvous(address, rank, count, timeout=TIMEOUT)))
    # Torchrun may keep its store when it starts the workers again, with the addresses of those that have ended.
    store = PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def _helpers(store: Path, count: int, threads: int) -> Iterator[list["subprocess.Popen[str]"]]:
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    warnings = [f"-W{option}" for option in sys.warnoptions]
    words = [sys.executable, *warnings, "-m", f"{__package__}.worker_process", str(store), str(count), str(threads)]
    helpers = [
        subprocess.Popen(
            [*words, str(rank)],
            stdin=subprocess.PIPE,  # it ends when this process does
            stdout=subprocess.PIPE,  # why a worker has ended
            text=True,
            start_new_session=True,  # Ctrl-C is for the first worker, which tells the others
        )
        for rank in range(1, count)
    ]
    try:
        yield helpers
        for helper in helpers:
            with suppress(subprocess.TimeoutExpired):
                helper.wait(LAST_SECONDS)
    finally:
        for helper in helpers:
            helper.kill()
            helper.communicate()


def _wait_until_ready(helpers: "list[subprocess.Popen[str]]") -> None:
    for helper in helpers:
        if helper.stdout is None or helper.stdout.readline() != "ready\n":
            raise RuntimeError("a worker has ended")


def _reason(helpers: "list[subprocess.Popen[str]]") -> str:
    """Why a worker has ended; empty if none has. One that only lost the others is no reason."""
    for rank, helper in enumerate(helpers, 1):
        with suppress(subprocess.TimeoutExpired):
            if (code := helper.wait(LAST_SECONDS / 5)) not in (0, LOST_OTHERS):
                message = helper.stdout.read().strip() if helper.stdout else ""
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                return message or (
                    f"worker {rank + 1} of {len(helpers) + 1} was ended {how}; the same command with --resume "
                    "continues from the last checkpoint"
                )
    return ""


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, or closed its standard input."""

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
