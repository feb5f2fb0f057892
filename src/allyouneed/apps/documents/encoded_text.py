"""Text files as bytes: keep the encoding and the byte order mark, and edit the text by position.

An edit may be inside another edit, such as an attribute inside a rewritten text.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...errors import DocumentError
from ...text.lines import is_windows_text


class Edit(NamedTuple):
    """New content for the characters from `start` to `end` of a page."""

    start: int
    end: int
    content: str


class Slice(NamedTuple):
    """The characters from `start` to `end` of a page."""

    start: int
    end: int


def edited(page: str, span: Slice, edits: Sequence[Edit]) -> str:
    """Return a part of a page with these edits, which must be in order.

    An edit inside another is skipped, because the outer edit's content already includes it.
    """
    parts = []
    position = span.start
    for edit in edits[bisect_left(edits, span.start, key=lambda edit: edit.start) :]:
        if edit.end > span.end:
            break
        if edit.start >= position:
            parts += [page[position : edit.start], edit.content]
            position = edit.end
    return "".join([*parts, page[position : span.end]])


_MARKS = {  # UTF-32 before UTF-16, because its mark begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}

# Codecs that write a byte order mark by themselves, which a file without a mark must not get.
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_LINE_END = re.compile(r"\r\n|\n|\r")


class EncodedText(NamedTuple):
    """The text of a file, with its line ends unchanged, and how the file encodes it."""

    text: str
    encoding: str
    byte_order_mark: bytes

    def replaced(self, edits: Iterable[Edit]) -> bytes:
        """Write the file with these edits. Refuses text that the encoding cannot express."""
        whole = edited(self.text, Slice(0, len(self.text)), sorted(edits))
        try:
            return self.byte_order_mark + whole.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DocumentError(
                f"is written in {self.encoding}, which has no {whole[error.start]!r}; convert it to UTF-8 first"
            ) from error


def decode_text(data: bytes, encoding: str = "") -> EncodedText:
    """Decode the text of a file: by its byte order mark, or else in `encoding`, or else as UTF-8.

    Refuses bytes that are invalid in the encoding, and names their line.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    name = _MARKS.get(mark) or encoding or "utf-8"
    try:
        name = _WITHOUT_MARK.get(codecs.lookup(name).name, name)
        return EncodedText(data[len(mark) :].decode(name), name, mark)
    except LookupError:
        raise DocumentError(
            f"cannot be read as {name!r}, which is not a known encoding; utf-8 and latin-1 are"
        ) from None
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, len(mark) + start) + 1
        raise DocumentError(
            f"is not {name.upper()}, at line {line}; convert it to UTF-8, or name its encoding with --encoding"
        ).mended_by(*(["--encoding", "windows-1252"] if is_windows_text(data) else [])) from error


def line_numbers(text: str, positions: Iterable[int]) -> Iterator[int]:
    """Yield the line of each position, counted from 1. The positions must be in order."""
    line, previous = 1, 0
    for position in positions:
        line += len(_LINE_END.findall(text, previous, position))
        previous = position
        yield line
