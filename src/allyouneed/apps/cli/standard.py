"""The three standard streams: a shell may have closed one of them, a disk may be full, or a reader may have ended."""

import io
import os
import sys
from contextlib import suppress


def open_closed_streams() -> None:
    """Replace closed standard streams.

    Otherwise the next opened file would get the number of a closed stream, and output would go into that file. Reading
    from a closed stream or writing to it then fails with EBADF; messages to a closed standard error are dropped.
    """
    streams = ((0, "stdin", "r", os.O_WRONLY), (1, "stdout", "w", os.O_RDONLY), (2, "stderr", "w", os.O_WRONLY))
    for number, name, mode, flags in streams:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(_devnull(number, flags), mode, encoding="utf-8", closefd=False))


def set_encodings() -> None:
    """Write UTF-8 to files and pipes, whatever the locale. A terminal shows characters it lacks as their numbers."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def drop_output() -> None:
    """Discard output that could not be written, because it would fail again at exit and change the exit code."""
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
