"""SubRip subtitles (.srt), as they are found: numbers may be missing, and blank lines may be inside a cue."""

import re

from ...errors import DocumentError
from .encoded_text import decode_text
from .subtitles import find_cues, subtitle_document
from .unit import Document, DocumentOptions

# The number of the next cue, in the line before its times.
_NUMBER = re.compile(r"(?:^|(?<=[\r\n]))[ \t]*\d+[ \t]*(?:\r\n|\r|\n)$")


def read_srt_document(data: bytes, options: DocumentOptions) -> Document:
    """The sentences of subtitles; see `subtitles` for how they are joined and broken. Refuses text without times."""
    encoded = decode_text(data, options.encoding)
    text = encoded.text
    spans = list(find_cues(text))
    if text.strip() and not spans:
        raise DocumentError('is no SubRip file: no line has times, such as "00:00:01,000 --> 00:00:02,500"')
    cues = []
    for time, start, end in spans:
        number = _NUMBER.search(text, start, end) if end < len(text) else None
        cues.append((time, start, number.start() if number else end))
    return subtitle_document(encoded, cues)
