"""Messages and progress of a command, on standard error, so that standard output has only results."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...machine.files import is_named_pipe

if TYPE_CHECKING:
    from rich.console import Console


class Screen:
    """Standard error. Rich is imported only for bars and styles, because plain lines look the same without it."""

    @cached_property
    def rich(self) -> "Console":
        """Standard error as a Rich console."""
        from rich.console import Console

        # A path may contain [brackets]. Lines are not wrapped: a pipe has no width, and a terminal wraps lines itself.
        return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """True if standard error is a terminal, so that somebody may be looking."""
        if os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}:
            return self.rich.is_terminal
        return sys.stderr.isatty()

    def print(self, text: str = "", *, end: str = "\n", **style: Any) -> None:
        """Write a line; while a bar is drawn, write it above the bar."""
        if style or "rich" in vars(self):
            self.rich.print(text, end=end, **style)
        else:
            print(text, end=end, file=sys.stderr, flush=True)


console = Screen()


def announce_pipes(*paths: Path | None) -> None:
    """Print a message for every named pipe, because opening it waits until another program opens the other end."""
    for path in paths:
        if path is not None and is_named_pipe(path):
            console.print(f"waiting for the other end of the pipe {path}")


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar over `total` sentences (None: unknown) in a terminal. Yields a function that advances it."""
    if not console.is_terminal:
        yield lambda _: None
        return
    from .progress_bar import sentence_bar

    with sentence_bar(what, total) as done:
        yield done


@contextmanager
def prompt() -> Iterator[Callable[[int], None]]:
    """Prompt for texts typed into a terminal. Yields a function, as `progress` does, that prints the next prompt."""
    if console.is_terminal:
        console.print("Type a text and press Enter; Ctrl-D ends.")
        console.print("> ", end="")
    yield lambda _: console.print("> ", end="") if console.is_terminal else None
    console.print()
