"""The running Python: its libraries and versions, and how to start it again for a module."""

import ctypes
import gc
import os
import platform
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


def is_installed(library: str) -> bool:
    """Return True if a library can be imported. A folder of that name does not count as a library."""
    spec = find_spec(library)
    return spec is not None and spec.origin is not None


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the words of a command that runs a module with this Python and its options.

    `python -m` looks for every module in the current folder first. The new process does so only if this process does.
    """
    finds_here = not {"", os.getcwd()}.isdisjoint(sys.path)
    warnings = [f"-W{option}" for option in sys.warnoptions]
    return [sys.executable, *([] if finds_here else ["-P"]), *warnings, "-m", module, *arguments]


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn off garbage collection inside this `with` block, and exempt all objects made in it for good.

    A program keeps what it imports and loads. Examining these objects takes an eighth of the time to start a server.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def end_with_parent() -> None:
    """Let Linux kill this process when its parent has ended, even if this process is stopped (SIGSTOP)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_PR_SET_PDEATHSIG = 1  # sys/prctl.h


def versions() -> str:
    """Return the versions of allyouneed, torch and Python in one line. Imports none of them."""
    return f"allyouneed {installed('allyouneed')}, torch {installed('torch')}, Python {platform.python_version()}"


def environment() -> dict[str, str]:
    """Return facts about this process: its command, program versions, the system and its processor."""
    return {
        "command": _command(),
        "versions": versions(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processor": f"{_processor()}, {os.cpu_count() or 1} cores",
    }


def _command() -> str:
    program = Path(sys.argv[0])
    words = ["python", "-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    # Python represents bytes of a name that are not UTF-8 as characters that cannot be written.
    return shlex.join([*words, *sys.argv[1:]]).encode(errors="backslashreplace").decode()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def installed(package: str) -> str:
    from importlib import metadata  # slow to import, and rarely needed

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from its source folder
        return "(not installed)"
