"""Passages of plain text: lines, and the paragraphs of text that was wrapped at a width.

What stands around a passage stays as it is: line ends, blank lines, indents, marks of lists and quotations, tabs, and
the blanks between columns. Tags of HTML that begin a line (`<p>`, `<li>`) stand around passages too, unless text was
wrapped.
"""

import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ...text.spans import iter_spans
from .inline_markup import BLOCKS, tag_name

_LINE = re.compile(r"[^\r\n]+")
_INDENT = re.compile(r"[ \t>]*")
_MARKED = re.compile(r"[ \t>]*(?:(?:[-–—*•·+]|\d{1,3}[.)])[ \t]+)?")
_COLUMN = re.compile(r"\S(?:(?! {3,}|\t).)*(?<=\S)")
SENTENCE_END = re.compile(r"[.!?…:;。！？]['\"”’»)\]]*$")
_NARROWEST = 40  # characters; lines of poems, addresses and tables are shorter than wrapped prose


class Passage(NamedTuple):
    """What is translated at once: characters `start` to `end` of a text.

    If `width` is set, these are lines wrapped at this width: `text` has them joined by blanks, and the lines after
    the first begin with `indent`. `first` is the number of characters of the mark or indent before the first line, and
    `newline` is what ends a line.
    """

    start: int
    end: int
    text: str
    width: int = 0
    first: int = 0
    indent: str = ""
    newline: str = "\n"

    def laid_out(self, translation: str) -> str:
        """The translation in lines like those of the original."""
        if not self.width:
            return translation
        return self.newline.join(_wrap(translation, self.width, " " * self.first, self.indent))[self.first :]


def find_passages(text: str, *, numbers: bool = False) -> Iterator[Passage]:
    """The passages of a text, in their order; a line without a letter, or with `numbers` a digit, has none."""
    for paragraph in _paragraphs(list(_LINE.finditer(text))):
        wrapped = _wrapped_passage(paragraph)
        for passage in [wrapped] if wrapped else _columns(paragraph):
            if any(character.isalpha() or (numbers and character.isdigit()) for character in passage.text):
                yield passage


def _paragraphs(lines: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Lines that follow one another; a blank line, and one that begins with the mark of a list, begins another."""
    paragraph: list[re.Match[str]] = []
    for line in lines:
        begins = not line.group().strip() or _prefix(_MARKED, line) != _prefix(_INDENT, line)
        if paragraph and (begins or _between(paragraph[-1], line) not in ("\n", "\r\n", "\r")):
            yield paragraph
            paragraph = []
        if line.group().strip():
            paragraph.append(line)
    if paragraph:
        yield paragraph


def _wrapped_passage(lines: list[re.Match[str]]) -> Passage | None:
    """The lines as one passage if wrapping their words again gives the same lines, and a sentence runs over an end."""
    if len(lines) < 2:
        return None
    prefix, indent = _prefix(_MARKED, lines[0]), _prefix(_INDENT, lines[1])
    if any(_prefix(_INDENT, line) != indent for line in lines[1:]) or "\t" in prefix + indent:
        return None
    rest = [line.group()[len(indent) :] for line in lines[1:]]
    words = [lines[0].group()[len(prefix) :], *rest]
    width = max(len(line.group()) for line in lines)
    text = " ".join(words)
    newlines = {_between(line, after) for line, after in pairwise(lines)}
    if (
        len(newlines) > 1
        or width < _NARROWEST
        or any(_COLUMN.fullmatch(line) is None for line in words)
        or not any(continues(line, after) for line, after in pairwise(words))
        or _wrap(text, width, prefix, indent) != [line.group() for line in lines]
    ):
        return None
    return Passage(lines[0].start() + len(prefix), lines[-1].end(), text, width, len(prefix), indent, *newlines)


def continues(line: str, after: str) -> bool:
    """Whether a sentence clearly runs from one line into the next: no sign ends it, and a small letter goes on."""
    return not SENTENCE_END.search(line) and after[:1].islower()


def _columns(lines: list[re.Match[str]]) -> Iterator[Passage]:
    for line in lines:
        for column in _COLUMN.finditer(line.string, line.start() + len(_prefix(_MARKED, line)), line.end()):
            yield from _between_blocks(column)


def _between_blocks(column: re.Match[str]) -> Iterator[Passage]:
    tags = (span for span in iter_spans(column.group(), ("tags", "placeholders")) if span.kind == "tags")
    blocks = [tag.bounds for tag in tags if tag_name(tag.text)[1] in BLOCKS]
    for (_, start), (end, _) in pairwise([(0, 0), *blocks, (len(column.group()), 0)]):
        text = column.group()[start:end]
        if text.strip():
            start += column.start() + len(text) - len(text.lstrip())
            yield Passage(start, start + len(text.strip()), text.strip())


def _between(line: re.Match[str], after: re.Match[str]) -> str:
    return line.string[line.end() : after.start()]


def _prefix(pattern: re.Pattern[str], line: re.Match[str]) -> str:
    match = pattern.match(line.group())
    return match.group() if match else ""


def _wrap(text: str, width: int, first: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        expand_tabs=False, replace_whitespace=False,
    )  # fmt: skip
