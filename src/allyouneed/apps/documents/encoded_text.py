"""Text formats as bytes: their encoding and byte order mark are kept, and parts of the text are replaced in place."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...errors import DocumentError

_MARKS = {  # UTF-32 before UTF-16, whose mark it begins with
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}

# Codecs that write a mark by themselves, which a file without one must not get.
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_LINE_END = re.compile(r"\r\n|\n|\r")

Replacement = tuple[int, int, str]  # characters from and to, and what stands there instead


class EncodedText(NamedTuple):
    """The text of a file, with line ends as they are, and how the file encodes it."""

    text: str
    encoding: str
    byte_order_mark: bytes

    def replaced(self, replacements: Iterable[Replacement]) -> bytes:
        """The file with other text in some spans, which do not overlap. All other characters stay.

        Refuses a text that the file's encoding cannot write.
        """
        parts, position = [], 0
        for start, end, text in sorted(replacements):
            parts += [self.text[position:start], text]
            position = end
        whole = "".join([*parts, self.text[position:]])
        try:
            return self.byte_order_mark + whole.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DocumentError(
                f"is written in {self.encoding}, which has no {whole[error.start]!r}; convert it to UTF-8 first"
            ) from error


def decode_text(data: bytes, encoding: str = "") -> EncodedText:
    """The text of a file: in the encoding of its byte order mark, else in `encoding`, else UTF-8.

    Refuses bytes that the encoding does not have, by their line.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    name = _MARKS.get(mark) or encoding or "utf-8"
    try:
        name = _WITHOUT_MARK.get(codecs.lookup(name).name, name)
        return EncodedText(data[len(mark) :].decode(name), name, mark)
    except LookupError:
        raise DocumentError(
            f"cannot be read as {name!r}, which is no encoding known here; utf-8 and latin-1 are"
        ) from None
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, len(mark) + start) + 1
        raise DocumentError(
            f"is not {name.upper()}, at line {line}; convert it to UTF-8, or name its encoding with --encoding"
        ) from error


def line_numbers(text: str, positions: Iterable[int]) -> Iterator[int]:
    """The line of each position, counted from 1; the positions are in their order."""
    line, previous = 1, 0
    for position in positions:
        line += len(_LINE_END.findall(text, previous, position))
        previous = position
        yield line
