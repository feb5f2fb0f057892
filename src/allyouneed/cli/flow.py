"""Input of any size, read in chunks of lines."""

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple, cast

from ..corpus.lines import LONGEST_LINE, TOO_LONG, bounded_lines, not_utf8, opened
from ..errors import DataError
from ..files import is_stream


class Chunk(NamedTuple):
    """Consecutive lines without surrounding spaces; the first one is line number `first` of the input.

    `refused` maps line numbers to the reason of the refusal; a line that cannot be decoded is an empty string.
    """

    first: int
    lines: list[str]
    refused: dict[int, str]


def read_chunks(file: str, *, size: int, live: bool = False, skip_refused: bool = False) -> Iterator[Chunk]:
    """The lines of a file, plain or compressed, or of standard input ("-"), `size` at a time.

    With `live`, the lines of standard input and of a pipe are yielded as they arrive, in chunks of any size.
    Only a line feed (or CR LF) ends a line. Refuses a line that is not UTF-8, has zero bytes or is too long, by
    its number, after a chunk of those before it; with `skip_refused` the chunk records it instead.
    """
    name = "standard input" if file == "-" else file
    first = 1
    for raw in _raw(file, size, live, on=skip_refused):
        chunk = Chunk(first, [], {})
        for number, line in enumerate(raw, start=first):
            try:
                chunk.lines.append(_decoded(line, number))
            except ValueError as error:
                if not skip_refused:
                    if chunk.lines:
                        yield chunk
                    raise DataError(f"{name}, line {number} {error}") from error
                chunk.lines.append("")
                chunk.refused[number] = str(error)
        first += len(raw)
        yield chunk


def _raw(file: str, size: int, live: bool, on: bool) -> Iterator[list[bytes | None]]:
    """Lines as bytes; None for a line that is too long, after which reading continues if `on`."""
    if file == "-":
        try:
            yield from _arriving(sys.stdin.buffer) if live else _chunks(sys.stdin.buffer, "standard input", size, on)
        except OSError as error:
            raise DataError(f"standard input could not be read: {error.strerror or error}") from error
    else:
        with opened(Path(file)) as stream:
            arrives = live and is_stream(Path(file))
            yield from _arriving(stream) if arrives else _chunks(stream, file, size, on)


def _chunks(stream: IO[bytes], name: str, size: int, on: bool) -> Iterator[list[bytes | None]]:
    chunk: list[bytes | None] = []
    for line in bounded_lines(stream, name):
        chunk.append(line)
        if len(chunk) == size or (line is None and not on):  # a line too long may have no end
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _arriving(stream: IO[bytes]) -> Iterator[list[bytes | None]]:
    # read1 returns the bytes that are available, so that a slow writer gets its answers at once.
    rest, too_long = b"", False
    while read := cast(BufferedReader, stream).read1(1 << 16):
        *whole, rest = (rest + read).split(b"\n")
        if too_long and whole:  # the rest of a line that is too long
            del whole[0]
            too_long = False
        lines: list[bytes | None] = [line if len(line) <= LONGEST_LINE else None for line in whole]
        if too_long or len(rest) > LONGEST_LINE:
            lines += [None] * (not too_long)
            rest, too_long = b"", True
        if lines:
            yield lines
    if rest:
        yield [rest]


def _decoded(line: bytes | None, number: int) -> str:
    if line is None:
        raise ValueError(TOO_LONG)
    if b"\0" in line:
        raise ValueError("has zero bytes: it is UTF-16, or no text; convert the file to UTF-8 first")
    try:
        return (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{not_utf8(error)}; convert the file to UTF-8 first") from error
