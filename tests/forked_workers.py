"""Workers and runs of tests, forked from a process that has imported everything: starting Python takes seconds."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allyouneed import Recipe, fit
from allyouneed.run import processes

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["allyouneed.run.worker_process", "allyouneed.run.model_process", "torch._dynamo"]
)  # Adam imports the last one


class ForkedWorker:
    """A worker of a run with what `Helpers` uses of `subprocess.Popen`."""

    latest: "ForkedWorker"

    def __init__(self, words: Sequence[str], *, pass_fds: Sequence[int], **_: object) -> None:
        read_by_worker, stdin = os.pipe()
        stdout, written_by_worker = os.pipe()
        passed = [Connection(os.dup(descriptor)) for descriptor in pass_fds]
        channels = [Connection(read_by_worker), Connection(written_by_worker), *passed]
        self._process = FORKS.Process(target=_work, args=(words, channels, dict(os.environ)))
        self._process.start()
        for channel in channels:
            channel.close()
        self.stdin = os.fdopen(stdin, "w")
        self.stdout = os.fdopen(stdout)
        type(self).latest = self

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("worker", timeout or 0)
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self._process.pid and self._process.is_alive():
            os.kill(self._process.pid, number)

    def communicate(self) -> None:
        self._process.join()
        self.stdin.close()
        self.stdout.close()


def _work(words: Sequence[str], channels: Sequence[Connection], environment: dict[str, str]) -> None:
    from allyouneed.run.model_process import run_models
    from allyouneed.run.worker_process import run_worker

    os.environ.update(environment)
    for descriptor, channel in enumerate(channels[:2]):
        os.dup2(channel.fileno(), descriptor)
        channel.close()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    if words[-1].endswith("model_process"):
        os._exit(_flushed(run_models()))
    store = [f"/dev/fd/{channel.fileno()}" for channel in channels[2:]]
    sys.argv = ["worker", *(store or words[-4:-3]), *words[-3:]]
    os._exit(_flushed(run_worker()))


def _flushed(code: int) -> int:
    sys.stdout.flush()
    return code


@contextmanager
def forking_workers() -> Iterator[None]:
    """Let runs fork their workers inside the `with` block."""
    replaced = {"Popen": ForkedWorker, "PIPE": subprocess.PIPE, "TimeoutExpired": subprocess.TimeoutExpired}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "subprocess", SimpleNamespace(**replaced))
        yield


def kill_worker() -> None:
    """Kill the worker that was forked last."""
    ForkedWorker.latest.send_signal(signal.SIGKILL)


def start_run(recipe: Recipe, folder: Path, temporary: Path) -> Any:
    """Start a run in a process of its own, with `temporary` as its folder of temporary files."""
    process = FORKS.Process(target=_run, args=(recipe, folder, temporary))
    process.start()
    return process


def _run(recipe: Recipe, folder: Path, temporary: Path) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(temporary.with_name("cache"))  # PyTorch keeps it for later processes
    fit(recipe, folder, evaluate=None)


def is_running(pid: int) -> bool:
    """Return True if a process is there and has not ended; a process that has ended has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def children_with(program: str, pid: int) -> list[int]:
    """Return the processes that a process has started with a program of the package."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if program in Path(f"/proc/{child}/cmdline").read_text()]
