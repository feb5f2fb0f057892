"""WebVTT subtitles (.vtt): https://www.w3.org/TR/webvtt1/."""

import re
from html import unescape

from ..errors import DocumentError
from .encoded_text import decode_text
from .subtitles import find_cues, subtitle_document
from .unit import Document, DocumentOptions

_ENTITIES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "\N{NO-BREAK SPACE}": "&nbsp;", "\N{LEFT-TO-RIGHT MARK}": "&lrm;",
    "\N{RIGHT-TO-LEFT MARK}": "&rlm;",
}  # fmt: skip
_REFERENCE = r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_CHARACTER = re.compile(rf"{_REFERENCE}|.", re.DOTALL)
_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)(?=\r|\n)")


class VttEscapes:
    """Character references. What stands in the source is written as it is there."""

    def unescape(self, text: str) -> str:
        return re.sub(_REFERENCE, _character, text)

    def escape(self, text: str, original: str) -> str:
        written: list[tuple[str, str]] = []  # each character of the source
        for match in _CHARACTER.finditer(original):
            character = _character(match)
            written += [(character, match.group())] if len(character) == 1 else zip(character, character, strict=True)
        same = "".join(character for character, _ in written).find(text)
        if same != -1:
            return "".join(reference for _, reference in written[same : same + len(text)])
        references = _ENTITIES | dict(sorted(written, key=lambda one: one[0] == one[1]))
        return "".join(references.get(character, character) for character in text)


def _character(reference: re.Match[str]) -> str:
    """The character of a reference; the reference itself if that is none, or a line end or the like."""
    character = unescape(reference.group())
    is_text = len(character) == 1 and (character.isprintable() or character in _ENTITIES)
    return character if is_text else reference.group()


def read_vtt_document(data: bytes, options: DocumentOptions) -> Document:
    """The sentences of subtitles; see `subtitles` for how they are joined and broken.

    Notes, styles, regions and the names of cues stay. Refuses a file that does not begin with WEBVTT.
    """
    encoded = decode_text(data, options.encoding)
    text = encoded.text
    if not re.match(r"WEBVTT(?![^\s])", text):
        raise DocumentError("is no WebVTT file: it does not begin with WEBVTT")
    cues = []
    for time, start, end in find_cues(text):
        blank = _BLANK_LINE.search(text, start, end)
        cues.append((time, start, blank.start() if blank else end))
    return subtitle_document(encoded, cues, VttEscapes())
