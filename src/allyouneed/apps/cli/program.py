"""Commands in messages, which work when copied, because they begin with the program's name as this shell finds it."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import install_command
from ...machine.files import unused
from ...machine.interpreter import is_installed

if TYPE_CHECKING:
    from ...bundle import Bundle

# Libraries that commands need besides the package, by the extra.
LIBRARIES = {"serve": ("fastapi", "uvicorn"), "html": ("py_mini_racer",)}


def shell_command(*words: object) -> str:
    """Write a command of this program that works when copied.

    The command begins with `allyouneed` if the shell finds that name, otherwise with a path. `words` and the program
    are quoted for the shell.
    """
    return f"{_program()} {shlex.join(map(str, words))}"


def command_with_extra(*words: object) -> str:
    """Write the command, preceded by the command that installs its extra if the extra is missing."""
    extra = words[words.index("--to") + 1] if "--to" in words else words[0]
    is_there = all(map(is_installed, LIBRARIES.get(str(extra), ())))
    return shell_command(*words) if is_there else f"{install_command(str(extra))} && {shell_command(*words)}"


def mended_command(options: Sequence[str], *, without: Sequence[str] = ()) -> str:
    """Write the running command with these options, in place of earlier ones, and without the flags in `without`."""
    names = {word.partition("=")[0] for word in options if word.startswith("--") or "=" in word}
    names |= {"-o"} if "--output" in names else set()
    with_value = {"-o"} | {name for name, after in pairwise([*options, "--"]) if not after.startswith("--")}
    kept, skipped = list[str](), False
    for word in sys.argv[1:]:
        name, equals, _ = word.partition("=")
        if name in names or name in without:
            skipped = not equals and name in with_value
        elif skipped or (equals and f"--{name.rpartition('.')[2]}" in names):  # a setting that is also an option
            skipped = False
        else:
            kept.append(word)
    return shell_command(*kept, *options)


def command_without(words: Iterable[str]) -> str:
    """Write the running command without the last occurrence of each of these words."""
    kept = sys.argv[:0:-1]
    for word in words:
        if word in kept:
            kept.remove(word)
    return shell_command(*kept[::-1])


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":  # python -m allyouneed
        return f"{shell_name('python', sys.executable)} -m allyouneed"
    return shell_name(called.name, sys.argv[0]) if called.stem == "allyouneed" else "allyouneed"


def shell_name(name: str, path: str) -> str:
    """Return the name of a program if this shell finds it by that name, otherwise its path."""
    executable = shutil.which(name)
    return name if executable and os.path.abspath(executable) == os.path.abspath(path) else shlex.quote(path)


def next_steps(folder: Path, bundle: "Bundle", text: str = "", *, longer: str = "") -> Iterator[str]:
    """Yield a line for each thing to do next with the model in `folder`.

    `text` is a text to translate, by default a sample from the bundle. `longer` is the command of a longer training; ""
    if more training would not help.
    """
    from ...evaluation.held_out import find_held_out_pairs

    text = text or next((probe for probe in bundle.probes if len(probe) <= 80 and not probe.startswith("-")), "")
    words = (text,) if text and not Path(text).exists() else ("FILE",)
    steps = {"train longer": longer} if longer else {}
    steps |= {
        "translate a text": shell_command("translate", folder, *words),
        "how good it is": shell_command("evaluate", folder, *([] if find_held_out_pairs(folder) else ["FILE"])),
        "in the browser": command_with_extra("serve", folder),
        "see how it works": shell_command(
            "explain", folder, *(words if text else ("TEXT",)), "-o", f"{folder}-explained.html", "--overwrite"
        ),
        "as one web page": command_with_extra("export", folder, unused(f"{folder}-page"), "--to", "html"),
    }
    if (report := folder / "report.html").is_file():
        steps["read the report"] = f"{shell_name('python', sys.executable)} -m webbrowser {report.resolve().as_uri()}"
    return (f"  {what:<17} {command}" for what, command in steps.items())
