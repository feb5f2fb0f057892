"""The processes of a run: workers that it starts on this machine, or that torchrun has started.

The first worker prepares the run, then sends the other workers a `Task`. They open the prepared pairs and the
checkpoint, and train together.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from ..config import Recipe
from ..errors import TrainingError
from ..fast.workers import WorkerGroup, Workers
from ..machine.interpreter import end_with_parent, python_command

TIMEOUT = timedelta(hours=12)  # for a validation, during which the other workers wait
LAST_SECONDS = 10  # for a worker to end
LOST_OTHERS = 3  # the exit code of a worker that lost another one


@dataclass(frozen=True, slots=True)
class Task:
    """Everything that a worker needs to take part in a run."""

    recipe: Recipe
    output: Path
    data_folder: Path
    threads: int
    window: int  # after this many updates the first worker may choose another number of cores; 0: never
    is_finished: bool = False


def started_by_torchrun() -> bool:
    """Return True if torchrun, or a similar program, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def is_follower() -> bool:
    """Return True if this process takes part in a run that another process leads."""
    return started_by_torchrun() and os.environ["RANK"] != "0"


@cache
def was_restarted() -> bool:
    """Return True if torchrun has restarted all workers because one of them failed. Only the first worker calls this.

    On a machine where no worker has failed, torchrun does not count the restart.
    """
    if not started_by_torchrun():
        return False
    counted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return counted or (has_agent_store() and agent_store().add("starts of allyouneed", 1) > 1)


@contextmanager
def group_of_torchrun() -> Iterator[None]:
    """Make the processes that torchrun has started, if any, a group inside the `with` block."""
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
    """Return True if an error says that another worker has ended."""
    return isinstance(error, RuntimeError) and any(words in str(error) for words in ("gloo", "NCCL"))


class MeetingFile:
    """A file through which the processes of a group find each other.

    On Linux it is in no folder, so a killed run leaves no file.
    """

    def __init__(self) -> None:
        self.descriptors: tuple[int, ...] = ()  # a started process must inherit these
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if sys.platform == "linux":
            self.descriptors = (os.memfd_create("workers"),)
            self.path = f"/dev/fd/{self.descriptors[0]}"
        else:
            self._folder = tempfile.TemporaryDirectory()
            self.path = str(Path(self._folder.name, "store"))

    def close(self) -> None:
        """Remove the file."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        if self._folder is not None:
            self._folder.cleanup()


def start_process(module: str, *arguments: str, inherits: Sequence[int] = ()) -> "subprocess.Popen[str]":
    """Start a program of this folder, which inherits some descriptors."""
    return subprocess.Popen(
        python_command(f"{__package__}.{module}", *arguments),
        stdin=subprocess.PIPE,  # closes when this process ends, which ends the other process too
        stdout=subprocess.PIPE,  # carries the reason why the other process has ended
        pass_fds=inherits,
        text=True,
        start_new_session=True,  # Ctrl-C only reaches this process, which tells the others
    )


def describe_end(process: "subprocess.Popen[str]", code: int, what: str) -> str:
    """Say why a process has ended: its last words, or else its exit code."""
    message = process.stdout.read().strip() if process.stdout else ""
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return message or f"{what} was ended {how}; resuming continues from the last checkpoint"


class Helpers:
    """Processes that start in the background, and become workers of this process's run when they are needed."""

    def __init__(self) -> None:
        self._meeting: MeetingFile | None = None
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Helpers":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def store(self) -> str:
        """The file through which the processes of a group find each other."""
        assert self._meeting is not None
        return self._meeting.path

    def start(self, count: int, *, threads: int) -> None:
        """Start the other processes for a group of `count` workers."""
        self.end()
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._meeting = MeetingFile()
        words = (self.store, str(count), str(threads))
        self.processes = [
            start_process("worker_process", *words, str(rank), inherits=self._meeting.descriptors)
            for rank in range(1, count)
        ]

    def failed(self) -> int:
        """Wait for the processes to be ready. Returns the number of the first one that could not start, or 0."""
        for number, process in enumerate(self.processes, 2):
            if process.stdout is None or process.stdout.readline() != "ready\n":
                return number
        return 0

    def require(self, count: int, *, threads: int) -> None:
        """Start the processes if they have not been started. Refuses to continue if any of them fails."""
        if count == 1 or self.processes or started_by_torchrun():
            return
        self.start(count, threads=threads)
        if number := self.failed():
            raise TrainingError(
                f"worker {number} of {count} could not start (its error is above); "
                "set train.workers=1 to train without it"
            )

    def wait(self) -> None:
        """Give the processes a little time to end by themselves."""
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LAST_SECONDS)

    def take(self, others: "Helpers") -> None:
        """Take over the processes of another `Helpers`, which then has none."""
        self._meeting = others._meeting
        self.processes = others.processes
        others._meeting = None
        others.processes = []

    def end(self) -> None:
        """End the processes. New ones may be started afterwards."""
        for process in self.processes:
            process.kill()
            process.communicate()
        self.processes = []
        if self._meeting is not None:
            self._meeting.close()
            self._meeting = None


@contextmanager
def running_workers(count: int, *, threads: int, helpers: Helpers) -> Iterator[Workers]:
    """Run the workers of a run: torchrun's, or `count`, of which this process is the first.

    The others are `helpers`. They are started if necessary, and end with the `with` block.
    """
    if started_by_torchrun():
        yield WorkerGroup()
    elif count == 1:
        yield Workers()
    else:
        helpers.require(count, threads=threads)
        with Helpers() as joined, _continued_at_a_signal(helpers.processes):
            joined.take(helpers)
            try:
                with process_group(f"file://{joined.store}", rank=0, count=count):
                    yield WorkerGroup()
            except RuntimeError as error:
                if reason := _reason(joined.processes):
                    raise TrainingError(reason) from error
                raise
            joined.wait()


@contextmanager
def process_group(address: str, *, rank: int, count: int) -> Iterator[None]:
    """Make the default group of `torch.distributed` inside the `with` block."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if started_by_torchrun() and has_agent_store():
        rank = int(os.environ["RANK"])
        count = int(os.environ["WORLD_SIZE"])
        store = store_for_start(agent_store(), rank, count)
    else:
        store, rank, count = next(iter(rendezvous(address, rank, count, timeout=TIMEOUT)))
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


def has_agent_store() -> bool:
    """Return True if torchrun keeps a store for the workers that survives their restarts."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def agent_store() -> Store:
    """Connect to the store that torchrun keeps."""
    host = os.environ["MASTER_ADDR"]
    port = int(os.environ["MASTER_PORT"])
    return TCPStore(host, port, is_master=False, timeout=TIMEOUT)


def store_for_start(kept: Store, rank: int, count: int) -> Store:
    """Make the store for one start of the workers. The first worker makes it; the others find its address in `kept`.

    The store `kept` survives restarts, so it may still have the address of an ended worker; the workers wait for a new
    one. Torchrun's number of restarts cannot tell them apart, because it may differ between machines.
    """
    key = "address of allyouneed"
    if rank == 0:
        with socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))) as connection:
            here = connection.getsockname()[0]
            there = connection.getpeername()[0]
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
def _continued_at_a_signal(helpers: "list[subprocess.Popen[str]]") -> Iterator[None]:
    """If this process receives a signal inside the `with` block, wake up workers that are stopped (SIGSTOP).

    Otherwise the first worker, which ends between two updates, would wait forever for a stopped worker. A thread does
    this, because Python runs a signal handler only after the exchange of gradients has returned.
    """
    if threading.current_thread() is not threading.main_thread():  # other threads receive no signals
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


def _reason(helpers: "list[subprocess.Popen[str]]") -> str:
    """Say why a worker has ended; "" if none has. A worker that ended because it lost another worker does not count."""
    for rank, helper in enumerate(helpers, 1):
        with suppress(subprocess.TimeoutExpired):
            if (code := helper.wait(LAST_SECONDS / 5)) not in (0, LOST_OTHERS):
                return describe_end(helper, code, f"worker {rank + 1} of {len(helpers) + 1}")
    return ""


def end_with_first() -> None:
    """End this process as soon as its parent has ended or closed this process's standard input."""
    end_with_parent()

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
