"""WebVTT subtitles (.vtt): https://www.w3.org/TR/webvtt1/."""

import re
from functools import lru_cache
from html import unescape

from ...errors import DocumentError
from .encoded_text import decode_text
from .subtitles import find_cues, subtitle_document
from .unit import Document, DocumentOptions

_ENTITIES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "\N{NO-BREAK SPACE}": "&nbsp;", "\N{LEFT-TO-RIGHT MARK}": "&lrm;",
    "\N{RIGHT-TO-LEFT MARK}": "&rlm;",
}  # fmt: skip
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)(?=\r|\n)")


class VttEscapes:
    """Character references. A sign that the source has as it is stays as it is, others are written as it has them."""

    def unescape(self, text: str) -> str:
        return _REFERENCE.sub(_character, text)

    def escape(self, text: str, original: str) -> str:
        return text.translate(_read_escapes(original))


@lru_cache(maxsize=1)  # a sentence with tags is written in many parts
def _read_escapes(original: str) -> dict[int, str]:
    read = {match.group(): _character(match) for match in _REFERENCE.finditer(original)}
    bare = _REFERENCE.sub(lambda match: "" if len(read[match.group()]) == 1 else match.group(), original)
    references = _ENTITIES | {character: reference for reference, character in read.items() if len(character) == 1}
    return {ord(character): reference for character, reference in references.items() if character not in bare}


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
