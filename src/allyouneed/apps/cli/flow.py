"""Input of any size, read in chunks of lines, which then get their translations."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from ...errors import DataError, InputError
from ...files import is_stream
from ...text.lines import LONGEST_LINE, TOO_LONG, not_utf8, opened, require_line_feeds


@dataclass(slots=True)
class Chunk:
    """Consecutive lines without surrounding spaces; the first one is line number `first` of the input.

    `refused` maps line numbers to the reason of the refusal; a line that cannot be decoded is an empty string.
    `rows` are the rows of the output, without those from the line on whose `error` ends the input.
    """

    first: int
    lines: list[str]
    refused: dict[int, str] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    error: DataError | InputError | None = None


def is_typed_text(file: str) -> bool:
    """Whether an argument is a text, not the name of a file: there is no such file, and it does not look like one."""
    looks_like_one = re.fullmatch(r"\S*(/\S*|\.[A-Za-z]\w{0,9})", file)
    return file != "-" and not looks_like_one and not os.path.lexists(file)


def read_chunks(
    file: str, *, size: int, live: bool = False, skip_refused: bool = False, text: str | None = None
) -> Iterator[Chunk]:
    """The lines of a file, plain or compressed, or of standard input ("-"), `size` at a time.

    Of a `text`, which is read instead, all lines are one chunk.
    With `live`, the lines of standard input and of a pipe are yielded as they arrive, in chunks of any size.
    Only a line feed (or CR LF) ends a line. A line that is not UTF-8, has zero bytes or is too long is the error of the
    last chunk; with `skip_refused` its chunk records it instead.
    """
    if text is not None:
        yield Chunk(1, [line.strip() for line in text.split("\n")])
        return
    name, first = "standard input" if file == "-" else file, 1
    for raw in _raw_chunks(file, size, live and (file == "-" or is_stream(Path(file))), endless=skip_refused):
        chunk = Chunk(first, [])
        for number, line in enumerate(raw, start=first):
            try:
                chunk.lines.append(_decoded(line, number))
            except ValueError as error:
                if not skip_refused:
                    chunk.error = DataError(f"{name}, line {number} {error}")
                    break
                chunk.lines.append("")
                chunk.refused[number] = str(error)
        yield chunk
        if chunk.error:
            return
        first += len(raw)


def _raw_chunks(file: str, size: int, live: bool, *, endless: bool) -> Iterator[list[bytes]]:
    """Lines as bytes. Of a line that is too long the beginning is kept; without `endless`, it is the last line."""
    lines, rest, is_first = list[bytes](), b"", True
    with _standard_input() if file == "-" else opened(Path(file)) as stream:
        # read1 returns the bytes that are available, so that a slow writer gets its answers at once.
        while (endless or len(rest) <= LONGEST_LINE) and (read := cast(BufferedReader, stream).read1(1 << 16)):
            *whole, rest = (rest[: LONGEST_LINE + 1] + read).split(b"\n")
            lines += whole
            while len(lines) >= size or (live and lines):
                yield lines[:size]
                lines, is_first = lines[size:], False
    if is_first and not lines:
        require_line_feeds(rest, "standard input" if file == "-" else file)
    if rest:
        lines.append(rest)
    if lines:
        yield lines


@contextmanager
def _standard_input() -> Iterator[IO[bytes]]:
    try:
        yield sys.stdin.buffer
    except OSError as error:
        raise DataError(f"standard input could not be read: {error.strerror or error}") from error


def _decoded(line: bytes, number: int) -> str:
    if len(line) > LONGEST_LINE:
        raise ValueError(TOO_LONG)
    if b"\0" in line:
        raise ValueError("has zero bytes: it is UTF-16, or no text; convert the file to UTF-8 first")
    try:
        return (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{not_utf8(error)}; convert the file to UTF-8 first") from error
