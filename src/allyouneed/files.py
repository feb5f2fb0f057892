"""Files that appear whole or not at all, and output paths that are not overwritten by accident."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import OutputError


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only once every byte is on the disk.

    The bytes go to `.NAME.partial` beside it, are flushed to the disk and then renamed, so a
    stopped process or a full disk leaves whatever stood under `path` before. Refuses, as an
    `OutputError`, a folder that cannot be written and a disk that is full.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(_why_not(path, error)) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to `path`, whole or not at all."""
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def append(path: Path, text: str) -> None:
    """Add `text` to the end of a file that others may be reading. Refuses as `written_whole` does."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(_why_not(path, error)) from error


def refuse_to_replace(path: Path, *, what: str) -> None:
    """Raise an `OutputError` if `path` exists; `what` names the thing that was to be written."""
    if path.exists():
        raise OutputError(
            f"{path} exists already, and {what} would replace it; name another place with --output, or say --overwrite"
        )


def _flush_folder(folder: Path) -> None:
    # A rename is safe from a power cut only once the folder itself is on the disk.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _why_not(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full: {path} could not be written (an earlier version is untouched); free some space"
    return f"{path} could not be written: {error.strerror or error}"
