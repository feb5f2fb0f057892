"""The three standard streams, as a shell may have left them: closed, full, or with nobody at the other end."""

import os
import sys
from contextlib import suppress


def open_closed_streams() -> None:
    """Put something in the place of standard streams that are closed.

    Else the next file to be opened would take their number, and what is meant for the stream would go into the file.
    Reading from what was closed, and writing to it, fails with EBADF; messages of which nobody hears are dropped.
    """
    for number, name, mode, other in ((0, "stdin", "r", os.O_WRONLY), (1, "stdout", "w", os.O_RDONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(_devnull(number, other), mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(_devnull(2, os.O_WRONLY), "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def drop_output() -> None:
    """Forget what standard output and error could not write: it would fail again at the exit, and change its code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _devnull(number: int, flags: int) -> int:
    descriptor = os.open(os.devnull, flags)
    if descriptor != number:
        try:
            os.fstat(number)
        except OSError:
            os.dup2(descriptor, number)
            os.close(descriptor)
            return number
    return descriptor
