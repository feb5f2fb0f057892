"""Files of any size, a stretch at a time: lines in, lines out, and where a killed run can go on."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ..errors import DataError, OutputError
from ..text.lines import not_utf8, opened


class Stretch(NamedTuple):
    """Some lines that follow each other, outer blanks left out; the first is number `first` of all."""

    first: int
    lines: list[str]


def stretches(file: str, *, size: int, skip: int = 0) -> Iterator[Stretch]:
    """The lines of a file, plain or compressed, `size` at a time; of standard input ("-"), as they arrive.

    The first `skip` lines are left out. Only a line feed (or CR LF) ends a line. Refuses, naming
    the line, what is not UTF-8.
    """
    name = "standard input" if file == "-" else file
    number = 1
    chunks = _arriving(cast(BufferedReader, sys.stdin.buffer)) if file == "-" else _chunks(Path(file), size)
    for raw in chunks:
        first, number = number, number + len(raw)
        if number - 1 > skip:
            kept = max(0, skip + 1 - first)
            lines = [_decoded(line, name, first + i) for i, line in enumerate(raw)][kept:]
            yield Stretch(first + kept, lines)
    if number - 1 < skip:
        raise OutputError(f"{name} has {number - 1} lines, but {skip} are translated already: that was another input")


def _chunks(path: Path, size: int) -> Iterator[list[bytes]]:
    with opened(path) as stream:
        while raw := list(islice(stream, size)):
            yield raw


def _arriving(stream: BufferedReader) -> Iterator[list[bytes]]:
    # A read gives what is there, at most so much: whoever writes slowly is answered at once.
    rest = b""
    while read := stream.read1(1 << 16):
        *whole, rest = (rest + read).split(b"\n")
        if whole:
            yield whole
    if rest:
        yield [rest]


def _decoded(line: bytes, name: str, number: int) -> str:
    try:
        return (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}, line {number} {not_utf8(error)}; convert the file to UTF-8 first") from error


def partial_of(output: Path) -> Path:
    """Where a result grows until it is whole."""
    return output.with_name(f"{output.name}.partial")


def lines_there(partial: Path, *, multiple: int) -> int:
    """How many lines of a killed run can be kept; the file is cut off after them.

    Whole stretches of `multiple` lines only, so that what comes after is worked out just as it would have been.
    """
    try:
        with partial.open("r+b") as file:
            count = kept = end = 0
            for line in file:
                end += len(line)
                count += line.endswith(b"\n")
                if count % multiple == 0 and line.endswith(b"\n"):
                    kept, place = count, end
            file.truncate(place if kept else 0)
    except FileNotFoundError:
        return 0
    return kept


@contextmanager
def growing(output: Path | None, *, begun: bool) -> Iterator[BinaryIO]:
    """Where lines go: standard output, or a file beside `output` that takes its name once it is whole.

    `begun` goes on behind what stands there. An error leaves what was written, for another try.
    """
    if output is None:
        yield sys.stdout.buffer
        return
    partial = partial_of(output)
    try:
        with partial.open("ab" if begun else "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(output)
    except OSError as error:
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
        raise OutputError(f"{output} could not be written: {error.strerror or error}") from error
    except BaseException:
        if not partial.stat().st_size:
            partial.unlink()
        raise
