"""Read the bytes and the lines of a file, plain or compressed."""

import bz2
import codecs
import gzip
import lzma
import re
import shlex
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar, cast

from ..config.suggest import near_path
from ..errors import DataError

ARCHIVES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
LONGEST_LINE = 1 << 20  # bytes; a small archive may contain a line that exceeds the memory
MAX_IN_MEMORY = 2 << 30  # bytes of text; a small archive may contain more lines than the memory can hold
LINE_OVERHEAD = 100  # approximate bytes that Python needs for a line besides its text
# The second is the number of lines in which zero bytes are looked for.
_UTF_16, _FIRST_LINES = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), 5
NOT_UTF8 = "is not UTF-8"
TOO_LONG = f"is longer than {LONGEST_LINE:,} bytes, which no sentence is; end lines with a line feed"
# Matches characters that Western texts in Windows-1252 do not have, or do not have between letters.
_NOT_WESTERN = re.compile(r"[^\0-\x7f\xa0-£§©«®°²´·º»¿À-ÖØ-öø-þŒœŠšŽžŸ‘’‚“”„–—…€•™]|[^\W\d_][¡-¿][^\W\d_]")

_T = TypeVar("_T")


def file_ending(path: Path) -> str:
    """Return the ending of a file's name in small letters. For a compressed file, return the ending before that one."""
    path = Path(path.name.lower())
    return Path(path.stem).suffix if path.suffix in ARCHIVES else path.suffix


@contextmanager
def opened(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file as bytes, unpacked if its name ends in .gz, .bz2, .xz or .zst.

    Refuses, as a `DataError`, a file that does not exist, cannot be read or is an incomplete archive.
    """
    path = Path(path)
    try:
        with _open(path) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError(f"{path} does not exist{near_path(path)}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path} could not be read: {error.strerror or error}") from error
        if isinstance(error, EOFError | OSError | zlib.error | lzma.LZMAError) or type(error).__name__ == "ZstdError":
            raise DataError(f"{path} is not a complete {ARCHIVES[path.suffix.lower()]} file: {error}") from error
        raise


def _open(path: Path) -> IO[bytes]:
    ending = path.suffix.lower()
    if ending == ".gz":
        return cast(IO[bytes], gzip.open(path))
    if ending == ".bz2":
        return bz2.open(path)
    if ending == ".xz":
        return lzma.open(path)
    if ending == ".zst":
        return _open_zstandard(path)
    return path.open("rb")


def _open_zstandard(path: Path) -> IO[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return cast(IO[bytes], zstd.open(path))


def bounded_lines(stream: IO[bytes], name: str | Path) -> Iterator[bytes | None]:
    """Yield the lines of a stream with their line ends, or None for a line longer than `LONGEST_LINE`.

    A longer line is never held in memory. Refuses lines that end in a carriage return only. `name` is the name of the
    file in messages.
    """
    line = stream.readline(LONGEST_LINE + 1)
    require_line_feeds(line, name)
    while line:
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
        else:
            yield None
            while line and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE)
        line = stream.readline(LONGEST_LINE + 1)


def require_line_feeds(first: bytes, name: str | Path) -> None:
    """Refuse a file whose lines end in carriage returns only: its `first` line then contains many of them."""
    if b"\n" not in first and b"\r" in first.rstrip(b"\r"):
        raise DataError(
            f"{name} has lines that end in carriage returns only; convert them: tr '\\r' '\\n' < {name} > FILE"
        )


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file without line ends and byte order mark. Only a line feed ends a line.

    Refuses a line longer than `LONGEST_LINE`, naming its number, and UTF-16, because most of its lines would pass as
    UTF-8.
    """
    with opened(path) as stream:
        for number, line in enumerate(bounded_lines(stream, path), start=1):
            if line is None:
                raise DataError(f"{path}, line {number} {TOO_LONG}")
            if number <= _FIRST_LINES and (line.startswith(_UTF_16) or b"\0" in line):
                raise DataError(
                    f"{path} is UTF-16 or not text; convert the file to UTF-8 first: {to_utf8(path, 'UTF-16')}"
                )
            yield (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")


def count_lines(path: str | Path) -> int:
    """Count the lines that `raw_lines` yields."""
    with opened(path) as stream:
        return sum(1 for _ in bounded_lines(stream, path))


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a UTF-8 text file, plain or compressed, stripped of surrounding white space.

    Only a line feed (or CR LF) ends a line, and other Unicode separators do not, so that the count equals that of `wc
    -l`. Refuses a line that is not UTF-8, naming its number, and more than `MAX_IN_MEMORY` in all.
    """
    return list(text_lines(path))


def text_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of `read_lines` one at a time, with the same refusals."""
    for number, line in enumerate(require_memory_for(raw_lines(path), len, str(path)), start=1):
        yield _decoded(line, str(path), number)


def require_memory_for(lines: Iterable[_T], length: Callable[[_T], int], name: str) -> Iterator[_T]:
    """Yield `lines`, which the caller keeps in memory. Refuses the first line that exceeds `MAX_IN_MEMORY` in all."""
    size = 0
    for number, line in enumerate(lines, start=1):
        size += length(line) + LINE_OVERHEAD
        if size > MAX_IN_MEMORY:
            raise DataError(
                f"{name} is too large to be read into memory: more than {MAX_IN_MEMORY >> 20:,} MiB by line "
                f"{number:,}; split the file"
            )
        yield line


def require_file(path: Path) -> None:
    """Refuse anything but a regular file. A pipe can be read only once, and training reads a corpus several times."""
    if not path.exists():
        raise DataError(f"{path} does not exist{near_path(path)}")
    if not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device, which can be read only once"
        raise DataError(f"{path} is {what}; expected a file of text")


def decode_lines(content: bytes, *, name: str) -> list[str]:
    """Split UTF-8 bytes into lines. `name` is the name of the file in messages."""
    require_line_feeds(content, name)
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [_decoded(line, name, number) for number, line in enumerate(lines, start=1)]


def _decoded(line: bytes, name: str, number: int) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}, line {number} {not_utf8(error)}; {windows_remedy(name)}") from error


def is_windows_text(sample: bytes) -> bool:
    """Return True if the beginning of a file looks like Windows-1252, which Western European spreadsheets use.

    This requires that no line with characters beyond ASCII is valid UTF-8, and that all these characters are common in
    Western texts. In other code pages they would be characters that no word has, or make words without an ASCII letter.
    """
    text = b"\n".join(lines_beyond_ascii(sample)).decode("cp1252", errors="replace")
    letters = [letter for letter in text if letter.isalpha()]
    others = sum(not letter.isascii() for letter in letters)
    return not is_utf8(sample) and not _NOT_WESTERN.search(text) and 2 * others < len(letters)


def is_utf8(sample: bytes) -> bool:
    """Return True if the beginning of a file is ASCII, or if one of its lines beyond ASCII is valid UTF-8."""
    lines = lines_beyond_ascii(sample)
    return not lines or any(map(_decodes, lines))


def lines_beyond_ascii(sample: bytes) -> list[bytes]:
    """Return the lines with characters beyond ASCII, without the last line, which may be cut off."""
    return [line for line in sample.split(b"\n")[:-1] or [sample] if not line.isascii()]


def _decodes(line: bytes) -> bool:
    try:
        return bool(line.decode())
    except UnicodeDecodeError:
        return False


def to_utf8(name: str | Path, encoding: str) -> str:
    """Return the command that converts a file from this encoding to UTF-8."""
    path = Path(name)
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(f'utf8-{path.name}')}"


def windows_remedy(name: str | Path) -> str:
    """Advise what to do about a file that is not UTF-8."""
    return f"convert the file to UTF-8 first; if it comes from Windows: {to_utf8(name, 'WINDOWS-1252')}"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say which byte of a line is invalid."""
    return f"{NOT_UTF8}: byte {error.object[error.start]:#04x} at position {error.start + 1} of the line"
