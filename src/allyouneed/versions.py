"""Which programs are at work: what a run notes down, so that it can be repeated."""

import platform
from importlib.metadata import PackageNotFoundError, version


def versions() -> str:
    """Versions of allyouneed, torch and Python in a line; nothing is imported for it."""
    return f"allyouneed {_installed('allyouneed')}, torch {_installed('torch')}, Python {platform.python_version()}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source folder
        return "(not installed)"
