"""Commands to copy: each begins with the program as this shell finds it."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def shell_command(*words: object) -> str:
    """A command of this program that works as printed: `allyouneed` where the shell finds that, else its path.

    `words` are quoted for the shell, as is the program.
    """
    return f"{_program()} {shlex.join(map(str, words))}"


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":  # python -m allyouneed
        return f"{_as_found('python', sys.executable)} -m allyouneed"
    return _as_found(called.name, sys.argv[0]) if called.stem == "allyouneed" else "allyouneed"


def _as_found(name: str, path: str) -> str:
    found = shutil.which(name)
    return name if found and os.path.abspath(found) == os.path.abspath(path) else shlex.quote(path)
