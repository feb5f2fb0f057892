"""Read input of any size in chunks of lines. Each line becomes a row of the output: text with tabs, or JSON."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ...errors import DataError, InputError
from ...machine.files import is_stream, to_json
from ...text.lines import LONGEST_LINE, TOO_LONG, not_utf8, opened, require_line_feeds

if TYPE_CHECKING:
    from ...translator import Translation, Translator


@dataclass(slots=True)
class Chunk:
    """Consecutive lines without surrounding spaces. The first one is line number `first` of the input.

    `refused` maps line numbers to the reasons why lines were refused. A line that cannot be decoded is "". `rows` are
    the rows of the output. `error` ends the input: the line that caused it and later lines have no rows.
    """

    first: int
    lines: list[str]
    refused: dict[int, str] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    error: DataError | InputError | None = None


def is_typed_text(file: str) -> bool:
    """Return True if an argument is text to translate: it does not look like a file name, and no such file exists."""
    looks_like_one = re.fullmatch(r"\S*(/\S*|\.[A-Za-z]\w{0,9})", file)
    return file != "-" and not looks_like_one and not os.path.lexists(file)


def read_chunks(
    file: str, *, size: int, live: bool = False, skip_refused: bool = False, text: str | None = None
) -> Iterator[Chunk]:
    """Yield the lines of a file, plain or compressed, or of standard input ("-"), `size` at a time.

    If `text` is given, it is read instead, as one chunk. With `live`, lines of standard input and of a pipe are yielded
    as they arrive, in chunks of any size. Only a line feed (or CR LF) ends a line. A line that is not UTF-8, has zero
    bytes or is too long becomes the error of the last chunk; with `skip_refused`, its chunk records it instead.
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
    """Yield lines as bytes. A line that is too long is cut off; without `endless`, it is the last."""
    lines, rest, is_first = list[bytes](), b"", True
    with _standard_input() if file == "-" else opened(Path(file)) as stream:
        # read1 returns the bytes that are available, so that a slow writer gets answers at once.
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
        raise ValueError("has zero bytes: it is UTF-16 or not text; convert the file to UTF-8 first")
    try:
        return (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode().strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{not_utf8(error)}; convert the file to UTF-8 first") from error


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What a row contains, as set by the options of `translate`."""

    prefix: str
    alternatives: int
    align: str | None
    json: bool
    skip_refused: bool
    scores: bool


def row_maker(load: Callable[[], "Translator"], options: RowOptions) -> Callable[[Chunk], Chunk]:
    """Make a function that adds rows to a chunk, using the translator that `load` returns.

    The function may run in another process. With `skip_refused`, it records refused lines. Otherwise the rows end
    before the first refused line, whose error is stored in the chunk.
    """
    translator = load()

    def make_rows(chunk: Chunk, end: int | None = None) -> Chunk:
        def refuse(error: InputError) -> None:
            chunk.refused[cast(int, error.line)] = str(error)

        try:
            translations = translator.translations(
                chunk.lines[:end], prefix=options.prefix, alternatives=options.alternatives, align=options.align,
                first_line=chunk.first, on_refused=refuse if options.skip_refused else None,
            )  # fmt: skip
            for number, one in enumerate(translations, start=chunk.first):
                if options.json:
                    row = as_json(one, error=chunk.refused.get(number))
                else:
                    row = as_text(one, scores=options.scores)
                chunk.rows.append(f"{row}\n")
        except InputError as error:
            chunk.error = error
            if error.line and not chunk.rows:  # the line was found before any line was translated
                make_rows(chunk, error.line - chunk.first)
        return chunk

    return make_rows


def as_text(translation: "Translation", *, scores: bool = False) -> str:
    """Write the text, its alternatives and its alignment, separated by tabs.

    With `scores`, each text is followed by its confidence, the mean log-probability of its tokens.
    """
    found = [translation, *translation.alternatives]
    has_columns = scores or len(found) > 1 or translation.alignment is not None
    columns = []
    for one in found:
        # A line break or a tab inside a translation would shift the following lines or columns.
        columns.append(one.text.replace("\t", " ") if has_columns else one.text)
        if scores:
            columns.append(f"{one.confidence:.4f}")
    if translation.alignment is not None:
        columns.append(str(translation.alignment))
    return "\t".join(re.sub(r"[\r\n]+", " ", column.strip("\r\n")) for column in columns)


def as_json(translation: "Translation", *, error: str | None = None) -> str:
    """Write a translation as a JSON object, with the units of its alignment, or with the `error` of a refused text."""
    row: dict[str, object] = {
        "source": translation.source,
        "text": translation.text,
        "confidence": round(translation.confidence, 6),
        "flags": translation.flags,
    }
    if translation.alternatives:
        row["alternatives"] = [
            {"text": other.text, "confidence": round(other.confidence, 6), "flags": other.flags}
            for other in translation.alternatives
        ]
    if translation.alignment is not None:
        row["alignment"] = str(translation.alignment)
        row["source_units"], row["target_units"] = translation.alignment.source, translation.alignment.target
    if error is not None:
        row["error"] = error
    return to_json(row)
