"""WebVTT subtitles (.vtt): https://www.w3.org/TR/webvtt1/."""

import re

from ...errors import DocumentError
from .encoded_text import decode_text
from .subtitles import find_cues, subtitle_document
from .unit import Document, DocumentOptions

_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)(?=\r|\n)")


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
    return subtitle_document(encoded, cues, is_markup=True)
