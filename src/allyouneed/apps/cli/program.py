"""Commands for messages, beginning with the program as this shell finds it."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path


def shell_command(*words: object) -> str:
    """A command of this program that works when copied: `allyouneed` if the shell finds it, else its path.

    `words` are quoted for the shell, as is the program.
    """
    return f"{_program()} {shlex.join(map(str, words))}"


def mended_command(options: Sequence[str], *, without: Sequence[str] = ()) -> str:
    """The command that is running, with these options instead of those of the same names, and `without` some flags."""
    names = {word.partition("=")[0] for word in options if word.startswith("--") or "=" in word}
    with_value = {name for name, after in pairwise([*options, "--"]) if not after.startswith("--")}
    kept, skipped = list[str](), False
    for word in sys.argv[1:]:
        name, equals, _ = word.partition("=")
        if name in names or name in without:
            skipped = not equals and name in with_value
        elif skipped or (equals and f"--{name.rpartition('.')[2]}" in names):  # a setting that an option has, too
            skipped = False
        else:
            kept.append(word)
    return shell_command(*kept, *options)


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":  # python -m allyouneed
        return f"{shell_name('python', sys.executable)} -m allyouneed"
    return shell_name(called.name, sys.argv[0]) if called.stem == "allyouneed" else "allyouneed"


def shell_name(name: str, path: str) -> str:
    """The name of a program if this shell finds it by that, else its path."""
    executable = shutil.which(name)
    return name if executable and os.path.abspath(executable) == os.path.abspath(path) else shlex.quote(path)
