"""This Python: the libraries that it finds, and how it is started again for a module of this package."""

import os
import sys
from importlib.util import find_spec


def is_installed(library: str) -> bool:
    """Whether a library can be imported. A folder of that name, as one finds in the current folder, is no library."""
    spec = find_spec(library)
    return spec is not None and spec.origin is not None


def python_command(module: str, *arguments: str) -> list[str]:
    """The words that run a module with this Python and its options.

    `python -m` looks for every module in the current folder first; the new process does so only where this one does.
    """
    finds_here = not {"", os.getcwd()}.isdisjoint(sys.path)
    warnings = [f"-W{option}" for option in sys.warnoptions]
    return [sys.executable, *([] if finds_here else ["-P"]), *warnings, "-m", module, *arguments]
