"""The versions that a run records, so that it can be repeated."""

import platform
from importlib.metadata import PackageNotFoundError, version


def versions() -> str:
    """Versions of allyouneed, torch and Python in one line; imports none of them."""
    return f"allyouneed {_installed('allyouneed')}, torch {_installed('torch')}, Python {platform.python_version()}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source folder
        return "(not installed)"
