"""SubRip and WebVTT subtitles (.srt, .vtt): translate the sentences in cues, and break them at similar lengths.

The lines of a cue are joined, except where a line ends a sentence or another speaker begins (with a dash, a name and a
colon, a voice or a colour). The last line of a cue and the first line of the next are joined if a sentence clearly
continues: either the first cue ends with a comma, or it ends without punctuation and the next cue begins with a small
letter. A line that the next cue repeats, as in captions that roll up, is read once.

Everything around the words stays: numbers, times, settings, dashes, names in capitals, notes, and tags around a line.
Times inside a line belong to words of the source, so a translation drops them. A translation is broken at the blanks
where its parts come closest to the proportions of the source's parts. A line that is longer than `MAX_LINE`, and longer
than every line of the file, is broken into lines of similar length.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import NamedTuple

from ...errors import DocumentError
from ...text.spans import TAG
from ...text.tokenizer import LANGUAGE_TAG
from .encoded_text import Edit, EncodedText, decode_text
from .inline_markup import MarkedText, take_out_codes
from .string_unit import has_words
from .text_ends import SENTENCE_END
from .unit import Document, DocumentOptions, Mark, UnitTranslation

MAX_LINE = 42  # characters; a usual limit of broadcasters
_MAX_CUES = 3  # in a sentence, because captions without punctuation would be joined without end

_TIME = r"(?:\d+:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
# The line with the times; the group is its first time.
_TIMING = re.compile(rf"(?:^|(?<=[\r\n]))[ \t]*({_TIME})[ \t]*-->[ \t]*{_TIME}[^\r\n]*")
_LINE = re.compile(r"[^\r\n]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BREAKS = r"\\[Nh]"  # line breaks and blanks in SubStation Alpha
_CODE = rf"{TAG}|{_BREAKS}"
_RUBY = r"<ruby\b[^<>\r\n]*+>[^\r\n]{0,300}?</ruby\s*+>"  # a word together with its reading
_TOKEN = re.compile(rf"{_RUBY}|({_CODE}|[\s♪♫#]++)|[^\s♪♫#<{{\\]++|[<{{\\]")
_DASHES = re.compile(rf"[-–—‐](?![-–—‐\d])|(?!{LANGUAGE_TAG.pattern})>>+")
# Who speaks, or what is heard, before the words of a line.
_NAME = r"[^\W\d_][\w.'’&-]*+"
_LABEL = re.compile(rf"({_NAME}(?: [\w.'’&#-]++){{0,3}}:|[\[(][^\[\]()<>\n]{{1,40}}[\])]:?)(?:\s|{_CODE})+(?=\S)")
_VOICE = r"<(?:v|c|font)[.\s][^<>\r\n]*>"
# Where another voice or colour begins inside a line.
_NEXT_VOICE = re.compile(rf"(?<=>)[ \t]*(?=<v[.\s])|(?<=</font>)[ \t]*(?={_VOICE})|(?<=</c>)[ \t]*(?={_VOICE})")
_VOICES = re.compile(rf"({_VOICE})|</(v|c|font)>")
_TIMES, _PLAIN_TAG = re.compile(r"<[\d:.]+>"), re.compile("</?c>")

_Span = tuple[int, int]


class Words(NamedTuple):
    """The characters from `start` to `end` of the file, all in one line. `is_new` means that another speaker begins."""

    start: int
    end: int
    is_new: bool


class CueLine(NamedTuple):
    """The words of a line in cue number `cue`, which begins at `time`, and the places where the line is repeated.

    `voice` is the tag of the voice or colour at the beginning of the words, and `last_voice` the tag at their end. Cues
    without new words are not numbered.
    """

    cue: int
    time: str
    start: int
    end: int
    is_new: bool
    voice: str
    last_voice: str
    repeats: list[Words]


def find_cues(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the time of each cue, and the start and end of its characters: up to the next line of times."""
    timings = list(_TIMING.finditer(text))
    for number, timing in enumerate(timings, start=1):
        end = timings[number].start() if number < len(timings) else len(text)
        yield timing[1], timing.end(), end


def subtitle_document(
    encoded: EncodedText, cues: Iterable[tuple[str, int, int]], *, is_markup: bool = False, language: Edit | None = None
) -> Document:
    """Make a document whose units are the sentences in cues.

    Each cue is its time, and the start and the end of its text in the file. With `is_markup`, "<" and "&" begin markup.
    `language` is an edit that names the target language in a translated file.
    """
    text = encoded.text
    sentences = [_Sentence(text, group, is_markup) for group in _joined(text, list(_cue_lines(text, cues)))]
    limit = max([MAX_LINE, *(length for sentence in sentences for length in sentence.lengths)])

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        pairs = zip(sentences, translations, strict=True)
        edits = [replacement for sentence, new in pairs if new for replacement in sentence.replacements(new, limit)]
        return encoded.replaced([*edits, language] if edits and language else edits)

    return Document(tuple(sentence.unit for sentence in sentences), write)


def _cue_lines(text: str, cues: Iterable[tuple[str, int, int]]) -> Iterator[CueLine]:
    cue = 0
    previous: dict[str, CueLine] = {}  # the lines of the previous cue
    for time, start, end in cues:
        lines: dict[str, CueLine] = {}
        voices = _voices(text, start, end)
        has_news = False
        for line in _LINE.finditer(text, start, end):
            for words in _line_words(line):
                content = " ".join(_marked(text[words.start : words.end]).text.split())
                if not has_words(content):
                    continue
                if content in previous:
                    lines[content] = previous[content]
                    previous[content].repeats.append(words)
                    continue
                voice, last_voice = (_voice_at(voices, at) for at in words[:2])
                lines[content] = CueLine(cue, time, *words, voice, last_voice, [])
                has_news = True
                yield lines[content]
        previous = lines
        cue += has_news


def _voices(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """Find where voices and colours begin or end in a cue, each with the tag that applies from there on."""
    opened: list[str] = []
    changes = [(start, "")]
    for tag in _VOICES.finditer(text, start, end):
        if tag[1]:
            opened.append(tag[1])
        elif opened:
            opened.pop()
        changes.append((tag.end(), opened[-1] if opened else ""))
    return changes


def _voice_at(voices: Sequence[tuple[int, str]], at: int) -> str:
    return voices[bisect_right(voices, at, key=lambda change: change[0]) - 1][1]


def _line_words(line: re.Match[str]) -> Iterator[Words]:
    """Yield the words of each voice in a line. A label before them is included unless it is in capitals."""
    starts = [line.start(), *(match.end() for match in _NEXT_VOICE.finditer(line.string, line.start(), line.end()))]
    for start, end in pairwise([*starts, line.end()]):
        words = _words(line.string, start, end)
        if words is None:
            continue
        words = words._replace(is_new=words.is_new or start > line.start())
        label = _LABEL.match(line.string, words.start, words.end)
        name = label[1] if label else ""
        if label and _is_label(name):
            if not name.isupper():
                yield Words(words.start, label.end(1), True)
            words = Words(label.end(), words.end, True)
        yield words


def _is_label(name: str) -> bool:
    return name[0] in "[(" or all(not word[0].isalpha() or word[0].isupper() for word in name.split())


def _words(text: str, line_start: int, line_end: int) -> Words | None:
    """Return a line's characters without the dashes, blanks, notes and tags around it, and whether it had a dash."""
    start = end = -1
    has_dash = False
    for token in _TOKEN.finditer(text, line_start, line_end):
        if token[1]:
            continue
        first = token.start()
        if start < 0 and not has_dash and (dash := _DASHES.match(text, first, line_end)):
            has_dash, first = True, dash.end()
        if first < token.end():
            start = first if start < 0 else start
            end = token.end()
    if start < 0:
        return None
    inside = text[start:end]
    if _TIMES.search(inside):  # tags around words with times are removed together with the times
        tags = _PLAIN_TAG.findall(inside)
        start -= 3 if tags[:1] == ["</c>"] and text.startswith("<c>", start - 3, start) else 0
        end += 4 if tags[-1:] == ["<c>"] and text.startswith("</c>", end) else 0
    return Words(start, end, has_dash)


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
    words, next_words = (_without_times(text[one.start : one.end]) for one in (line, after))
    if after.is_new or line.last_voice != after.voice or SENTENCE_END.search(words):
        return False
    if line.cue == after.cue:
        return len(_LINE_END.findall(text, line.end, after.start)) == 1
    has_tags = re.search(_CODE, words + next_words)  # that could be separated from their other end
    return not has_tags and after.cue == line.cue + 1 and (words.endswith(",") or next_words[0].islower())


def _marked(text: str, is_markup: bool = False) -> MarkedText:
    return take_out_codes(_without_times(text), is_markup=is_markup, breaks=_BREAKS)


def _without_times(words: str) -> str:
    """Remove the times at which words appear, and the tags around words that appear later."""
    plain, count = _TIMES.subn("", words)
    return _PLAIN_TAG.sub("", plain) if count else words


class _Sentence:
    """Lines that are translated together."""

    def __init__(self, text: str, lines: Sequence[CueLine], is_markup: bool) -> None:
        self.text, self.lines = text, lines
        after_times = _LINE_END.search(text, 0, lines[0].start)
        self.newline = after_times.group() if after_times else "\n"
        originals = [text[line.start : line.end] for line in lines]
        marked = _marked("\n".join(originals), is_markup)  # no tag extends over a line end
        self.marked = replace(marked, text=marked.text.replace("\n", " "), blanks=dict.fromkeys(marked.blanks, " "))
        self.lengths = [len(_marked(line).text) for line in originals]
        self.unit = self.marked.unit(lines[0].time)

    def replacements(self, translation: UnitTranslation, limit: int) -> Iterator[Edit]:
        """Yield the new text of each line. Yields nothing if the translation equals the text."""
        if not translation.changes(self.unit):
            return
        new = self.marked.rewritten(translation)
        spans = split_like(new.text, self.lengths)
        if spans:
            for line, span in zip(self.lines, spans, strict=True):
                yield from _line_edits(line, line.start, self._written(new, span, limit))
            return
        # With fewer words than lines, the first line of every cue shows all words, because an empty cue would show
        # nothing.
        whole = self._written(new, (0, len(new.text)), limit)
        for _, group in groupby(self.lines, key=lambda line: line.cue):
            first, *others = group
            yield from _line_edits(first, first.start, whole)
            for before, line in pairwise([first, *others]):
                markup = re.findall(_CODE, self.text[before.end : line.start])
                yield from _line_edits(line, before.end, "".join(markup), again=whole)

    def _written(self, new: MarkedText, span: _Span, limit: int) -> str:
        """Write a part of a translation, with its tags, in as few lines as the limit permits."""
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


def _line_edits(line: CueLine, start: int, content: str, again: str = "") -> Iterator[Edit]:
    """Replace a line from a given character on. Where it is repeated, do the same, without tags or with `again`."""
    yield Edit(start, line.end, content)
    yield from (Edit(one.start, one.end, again or re.sub(_CODE, "", content)) for one in line.repeats)


def _marks_between(marks: Sequence[Mark], text: str, start: int, end: int) -> list[Mark]:
    """Return the marks of a part. Between parts that touch, closing marks belong to the first, others to the second."""
    touches_before = start > 0 and not text[start - 1].isspace()
    touches_after = end < len(text) and not text[end].isspace()

    def belongs(mark: Mark) -> bool:
        after_start = mark.at > start or (mark.at == start and (not touches_before or mark.kind != "close"))
        before_end = mark.at < end or (mark.at == end and (not touches_after or mark.kind == "close"))
        return after_start and before_end

    return [mark._replace(at=mark.at - start) for mark in marks if belongs(mark)]


def split_like(text: str, lengths: Sequence[int]) -> list[_Span] | None:
    """Split a text at blanks into parts that come closest to these lengths; None if it has too few blanks.

    The blank between two parts belongs to neither. A text without blanks (Chinese, Japanese) may be split anywhere.
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
    """Read the sentences of SubRip subtitles; see the module for how lines are joined. Refuses text without times."""
    encoded = decode_text(data, options.encoding)
    text = encoded.text
    spans = list(find_cues(text))
    if text.strip() and not spans:
        raise DocumentError('is not a SubRip file: no line has times, such as "00:00:01,000 --> 00:00:02,500"')
    cues = []
    for time, start, end in spans:
        number = _NUMBER.search(text, start, end) if end < len(text) else None
        cues.append((time, start, number.start() if number else end))
    return subtitle_document(encoded, cues)


_HEADER_LANGUAGE = re.compile(r"[^\r\n]*(?:(?:\r\n|\r|\n)(?!Language:)[^\r\n]+)*(?:\r\n|\r|\n)Language:[ \t]*([^\s]+)")
_BLANK_LINE = re.compile(r"(?>\r\n|\r|\n)(?=\r|\n)")


def read_vtt_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the sentences of WebVTT subtitles; see the module for how lines are joined and broken.

    Notes, styles, regions and names of cues stay. A `Language` header becomes the target language. Refuses a file that
    does not begin with WEBVTT.
    """
    encoded = decode_text(data, options.encoding)
    text = encoded.text
    if not re.match(r"WEBVTT(?![^\s])", text):
        raise DocumentError("is not a WebVTT file: it does not begin with WEBVTT")
    language = _HEADER_LANGUAGE.match(text) if options.target_language else None
    edit = Edit(*language.span(1), options.target_language) if language else None
    cues = []
    for time, start, end in find_cues(text):
        blank = _BLANK_LINE.search(text, start, end)
        cues.append((time, start, blank.start() if blank else end))
    return subtitle_document(encoded, cues, is_markup=True, language=edit)
