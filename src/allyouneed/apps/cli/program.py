"""Commands for messages, beginning with the program as this shell finds it."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def shell_command(*words: object) -> str:
    """A command of this program that works when copied: `allyouneed` if the shell finds it, else its path.

    `words` are quoted for the shell, as is the program.
    """
    return f"{_program()} {shlex.join(map(str, words))}"


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":  # python -m allyouneed
        return f"{_shell_name('python', sys.executable)} -m allyouneed"
    return _shell_name(called.name, sys.argv[0]) if called.stem == "allyouneed" else "allyouneed"


def _shell_name(name: str, path: str) -> str:
    executable = shutil.which(name)
    return name if executable and os.path.abspath(executable) == os.path.abspath(path) else shlex.quote(path)
