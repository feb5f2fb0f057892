"""SubRip and WebVTT subtitles (.srt, .vtt): lines in cues ↔ sentences to translate, broken again at similar lengths.

Lines of one cue are joined unless one ends a sentence or the next begins with a speaker's dash. The last line of a cue
and the first of the next are joined where a sentence clearly goes on: nothing ends it, and a small letter follows, or a
comma is between them. Everything around the words stays: numbers, times, settings, dashes, notes, tags around a line.
A translation is broken at the blanks that part it most like its source. A line longer than `MAX_LINE`, and than every
line of the file, is broken in lines of similar length.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import NamedTuple

from ...errors import DocumentError
from ...text.spans import TAG
from .encoded_text import Edit, EncodedText, decode_text
from .inline_markup import MarkedText, take_out_codes
from .string_unit import has_words
from .text_ends import SENTENCE_END
from .unit import Document, DocumentOptions, Mark, UnitTranslation

MAX_LINE = 42  # characters, a usual limit of broadcasters
_MAX_CUES = 3  # of one sentence: captions without punctuation would be joined without end

_TIME = r"(?:\d+:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_TIMING = re.compile(rf"(?:^|(?<=[\r\n]))[ \t]*({_TIME})[ \t]*-->[ \t]*{_TIME}[^\r\n]*")  # the line; its first time
_LINE = re.compile(r"[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BREAKS = r"\\[Nh]"  # of lines and between words, in SubStation Alpha
_CODE = rf"{TAG}|{_BREAKS}"
_RUBY = r"<ruby\b[^<>\r\n]*+>[^\r\n]{0,300}?</ruby\s*+>"  # a word with its reading, which belongs to it
_TOKEN = re.compile(rf"{_RUBY}|({_CODE}|[\s♪♫#]++)|[^\s♪♫#<{{\\]++|[<{{\\]")
_DASHES = re.compile(r"[-–—‐](?![-–—‐\d])|>>+")

_Span = tuple[int, int]


class CueLine(NamedTuple):
    """The words of one line of cue number `cue`, which begins at `time`: characters `start` to `end` of the file."""

    cue: int
    time: str
    start: int
    end: int
    has_dash: bool  # before it: another speaker begins


def find_cues(text: str) -> Iterator[tuple[str, int, int]]:
    """Of each cue, its time, and the characters from the end of the line with its times to the next such line."""
    timings = list(_TIMING.finditer(text))
    for number, timing in enumerate(timings, start=1):
        end = timings[number].start() if number < len(timings) else len(text)
        yield timing[1], timing.end(), end


def subtitle_document(
    encoded: EncodedText, cues: Iterable[tuple[str, int, int]], *, is_markup: bool = False
) -> Document:
    """The document whose units are the sentences in some cues: of each cue, its time and the characters of its text.

    With `is_markup` the format is one of markup, in which "<" and "&" begin something.
    """
    text = encoded.text
    sentences = [_Sentence(text, group, is_markup) for group in _joined(text, list(_cue_lines(text, cues)))]
    limit = max([MAX_LINE, *(length for sentence in sentences for length in sentence.lengths)])

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        pairs = zip(sentences, translations, strict=True)
        return encoded.replaced(
            replacement for sentence, new in pairs if new for replacement in sentence.replacements(new, limit)
        )

    return Document(tuple(sentence.unit for sentence in sentences), write)


def _cue_lines(text: str, cues: Iterable[tuple[str, int, int]]) -> Iterator[CueLine]:
    for cue, (time, start, end) in enumerate(cues):
        for line in _LINE.finditer(text, start, end):
            words, has_dash = _words(line)
            if words and has_words(_marked(text[slice(*words)]).text):
                yield CueLine(cue, time, *words, has_dash)


def _words(line: re.Match[str]) -> tuple[_Span | None, bool]:
    """The characters of a line without dashes, blanks, notes and tags around them; and whether there was a dash."""
    start = end = -1
    has_dash = False
    for token in _TOKEN.finditer(line.string, line.start(), line.end()):
        if token[1]:
            continue
        first = token.start()
        if start < 0 and not has_dash and (dash := _DASHES.match(line.string, first, line.end())):
            has_dash, first = True, dash.end()
        if first < token.end():
            start = first if start < 0 else start
            end = token.end()
    return ((start, end) if start >= 0 else None), has_dash


def _joined(text: str, lines: Sequence[CueLine]) -> Iterator[list[CueLine]]:
    group = list(lines[:1])
    for line, after in pairwise(lines):
        if _continues(text, line, after) and after.cue - group[0].cue < _MAX_CUES:
            group.append(after)
        else:
            yield group
            group = [after]
    if group:
        yield group


def _continues(text: str, line: CueLine, after: CueLine) -> bool:
    words, next_words = text[line.start : line.end], text[after.start : after.end]
    if after.has_dash or SENTENCE_END.search(words):
        return False
    if line.cue == after.cue:
        return len(_LINE_END.findall(text, line.end, after.start)) == 1
    has_tags = re.search(_CODE, words + next_words)  # that could come to stand in another cue than their other end
    return not has_tags and after.cue == line.cue + 1 and (words.endswith(",") or next_words[0].islower())


def _marked(text: str, is_markup: bool = False) -> MarkedText:
    return take_out_codes(text, is_markup=is_markup, breaks=_BREAKS)


class _Sentence:
    """Lines that are translated together."""

    def __init__(self, text: str, lines: Sequence[CueLine], is_markup: bool) -> None:
        self.text, self.lines = text, lines
        after_times = _LINE_END.search(text, 0, lines[0].start)
        self.newline = after_times.group() if after_times else "\n"
        originals = [text[line.start : line.end] for line in lines]
        marked = _marked("\n".join(originals), is_markup)  # no tag runs over a line
        self.marked = replace(marked, text=marked.text.replace("\n", " "), blanks=dict.fromkeys(marked.blanks, " "))
        self.lengths = [len(_marked(line).text) for line in originals]
        self.unit = self.marked.unit(lines[0].time)

    def replacements(self, translation: UnitTranslation, limit: int) -> Iterator[Edit]:
        """What stands in each line instead; nothing if the translation is the text itself."""
        if not translation.changes(self.unit):
            return
        new = self.marked.rewritten(translation)
        spans = split_like(new.text, self.lengths)
        if spans:
            for line, span in zip(self.lines, spans, strict=True):
                yield Edit(line.start, line.end, self._written(new, span, limit))
            return
        # Fewer words than lines: every cue shows them all, in its first line, as an empty cue would show nothing.
        for _, group in groupby(self.lines, key=lambda line: line.cue):
            first, *others = group
            yield Edit(first.start, first.end, self._written(new, (0, len(new.text)), limit))
            for before, line in pairwise([first, *others]):
                markup = re.findall(_CODE, self.text[before.end : line.start])
                yield Edit(before.end, line.end, "".join(markup))

    def _written(self, new: MarkedText, span: _Span, limit: int) -> str:
        """A part of a translation in the least lines that keep to the limit, with its tags."""
        start, end = span
        lines = [span]
        for count in range(2, 2 + math.ceil((end - start) / limit)):
            if all(last - first <= limit for first, last in lines):
                break
            split = split_like(new.text[start:end], [(end - start) // count] * count)
            lines = [(start + first, start + last) for first, last in split] if split else lines
        return self.newline.join(
            new.written(new.text[first:last], _marks_between(new.marks, new.text, first, last)) for first, last in lines
        )


def _marks_between(marks: Sequence[Mark], text: str, start: int, end: int) -> list[Mark]:
    """The marks of a part. Between parts that touch, what closes belongs to the first, the rest to the second."""
    touches_before = start > 0 and not text[start - 1].isspace()
    touches_after = end < len(text) and not text[end].isspace()

    def belongs(mark: Mark) -> bool:
        after_start = mark.at > start or (mark.at == start and (not touches_before or mark.kind != "close"))
        before_end = mark.at < end or (mark.at == end and (not touches_after or mark.kind == "close"))
        return after_start and before_end

    return [mark._replace(at=mark.at - start) for mark in marks if belongs(mark)]


def split_like(text: str, lengths: Sequence[int]) -> list[_Span] | None:
    """A text in parts whose lengths are as near to these as its blanks allow; None if it has too few.

    The blank between two parts belongs to neither. A text without blanks (Chinese, Japanese) may be parted anywhere.
    """
    breaks = [match.span() for match in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
    blank = 1 if breaks else 0  # characters between two parts
    if not breaks:
        breaks = [(i, i) for i in range(1, len(text)) if not (text[i - 1].isascii() or text[i].isascii())]
    count = len(lengths) - 1
    if len(breaks) < count:
        return None
    scale = len(text) / max(1, sum(lengths) + blank * count)
    chosen: list[_Span] = []
    first = ideal = 0
    for number, length in enumerate(lengths[:-1]):
        ideal += length
        choices = range(first, len(breaks) - (count - 1 - number))
        best = min(choices, key=lambda i: abs(breaks[i][0] - ideal * scale))
        chosen.append(breaks[best])
        first = best + 1
        ideal += blank
    starts = [0, *(end for _, end in chosen)]
    return list(zip(starts, [*(start for start, _ in chosen), len(text)], strict=True))


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
