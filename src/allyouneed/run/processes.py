"""The processes of a run: the workers that it starts on this machine, or those that torchrun has started.

A run is prepared by the first worker. It then gives the others a `Task`; these open the prepared pairs and the
checkpoint, and train with it.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store, TCPStore
from torch.distributed.rendezvous import rendezvous

from ..config import Recipe
from ..errors import TrainingError
from ..fast.workers import WorkerGroup, Workers
from ..interpreter import python_command

TIMEOUT = timedelta(hours=12)  # for a validation, during which the other workers wait
LAST_SECONDS = 10  # for a worker to end
LOST_OTHERS = 3  # the exit code of a worker that another one has left


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker needs to take part in a run."""

    recipe: Recipe
    output: Path
    data_folder: Path
    threads: int
    is_finished: bool = False


def started_by_torchrun() -> bool:
    """Whether torchrun, or a program like it, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def is_follower() -> bool:
    """Whether this process takes part in a run that another one directs."""
    return started_by_torchrun() and os.environ["RANK"] != "0"


@cache
def was_restarted() -> bool:
    """Whether torchrun has started all workers again, because one has failed; only the first worker calls this.

    The agent of a machine whose workers have not failed starts them again without counting it.
    """
    if not started_by_torchrun():
        return False
    counted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return counted or (has_agent_store() and agent_store().add("starts of allyouneed", 1) > 1)


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
        if not has_lost_others(error):
            raise
        raise TrainingError(
            "another worker of this run has ended; resuming continues from the last checkpoint"
        ).mended_by("--resume") from error


def has_lost_others(error: Exception) -> bool:
    """Whether an error says that another worker has ended."""
    return isinstance(error, RuntimeError) and "gloo" in str(error)


@contextmanager
def running_workers(count: int, *, threads: int) -> Iterator[Workers]:
    """The workers of a run, of which this process is the first: `count` that are started, or those of torchrun."""
    if started_by_torchrun():
        yield WorkerGroup()
    elif count == 1:
        yield Workers()
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            _helpers(Path(folder, "store"), count, threads) as helpers,
            _continued_at_a_signal(helpers),
        ):
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
    if started_by_torchrun() and has_agent_store():
        rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store = store_for_start(agent_store(), rank, count)
    else:
        store, rank, count = next(iter(rendezvous(address, rank, count, timeout=TIMEOUT)))
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


def has_agent_store() -> bool:
    """Whether torchrun keeps a store for the workers, however often it starts them."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def agent_store() -> Store:
    """The store that torchrun keeps."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return TCPStore(host, port, is_master=False, timeout=TIMEOUT)


def store_for_start(kept: Store, rank: int, count: int) -> Store:
    """A new store for this start of the workers, in the first of them, which the others learn of from a `kept` one.

    A kept store has the addresses of workers that have ended; torchrun's number of restarts may differ by machine.
    """
    key = "address of allyouneed"
    if rank == 0:
        with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as connection:
            here, there = connection.getsockname()[0], connection.getpeername()[0]
        host = os.environ["MASTER_ADDR"] if here == there else here
        store = TCPStore(host, 0, count, is_master=True, timeout=TIMEOUT, wait_for_workers=False)
        kept.set(key, f"{host} {store.port}")
        return store
    while True:
        host, port = kept.get(key).decode().split()
        try:
            socket.create_connection((host, int(port)), LAST_SECONDS).close()
        except OSError:  # the first worker of an earlier start, which has ended
            time.sleep(0.1)
        else:
            return TCPStore(host, int(port), count, is_master=False, timeout=TIMEOUT, wait_for_workers=False)


@contextmanager
def _helpers(store: Path, count: int, threads: int) -> Iterator[list["subprocess.Popen[str]"]]:
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    words = python_command(f"{__package__}.worker_process", str(store), str(count), str(threads))
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


@contextmanager
def _continued_at_a_signal(helpers: "list[subprocess.Popen[str]]") -> Iterator[None]:
    """Inside the block, a signal to this process continues the workers that are stopped (SIGSTOP).

    The first worker ends between two updates, and would wait for a stopped worker. A thread does this, since a Python
    signal handler runs only when the exchange of gradients has returned.
    """
    if threading.current_thread() is not threading.main_thread():  # it gets no signals
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def continue_helpers() -> None:
        while os.read(reader, 1):
            for helper in helpers:
                helper.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=continue_helpers, daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)


def _wait_until_ready(helpers: "list[subprocess.Popen[str]]") -> None:
    for rank, helper in enumerate(helpers, 1):
        if helper.stdout is None or helper.stdout.readline() != "ready\n":
            raise TrainingError(
                f"worker {rank + 1} of {len(helpers) + 1} could not start (its error is above); "
                "set train.workers=1 to train without it"
            )


def _reason(helpers: "list[subprocess.Popen[str]]") -> str:
    """Why a worker has ended; empty if none has. A worker that ended because it lost another is no reason."""
    for rank, helper in enumerate(helpers, 1):
        with suppress(subprocess.TimeoutExpired):
            if (code := helper.wait(LAST_SECONDS / 5)) not in (0, LOST_OTHERS):
                message = helper.stdout.read().strip() if helper.stdout else ""
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                return message or (
                    f"worker {rank + 1} of {len(helpers) + 1} was ended {how}; resuming continues from the last "
                    "checkpoint"
                )
    return ""


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, or closed its standard input."""

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
