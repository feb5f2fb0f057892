"""The versions that a run records, so that it can be repeated."""

import os
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def versions() -> str:
    """Versions of allyouneed, torch and Python in one line; imports none of them."""
    return f"allyouneed {installed('allyouneed')}, torch {installed('torch')}, Python {platform.python_version()}"


def environment() -> dict[str, str]:
    """The command of this process, the program versions, the system and its processor."""
    return {
        "command": _command(),
        "versions": versions(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processor": f"{_processor()}, {os.cpu_count() or 1} cores",
    }


def _command() -> str:
    program = Path(sys.argv[0])
    words = ["python", "-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    # Python keeps what is not UTF-8 in a name as characters that cannot be written.
    return shlex.join([*words, *sys.argv[1:]]).encode(errors="backslashreplace").decode()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source folder
        return "(not installed)"
