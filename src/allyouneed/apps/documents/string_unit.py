"""Plain text: strings of a document (messages, cells) and text files (.txt).

A string is one unit, whose lines are its passages; in a text file every passage is a unit. A passage is a line, or a
paragraph that was wrapped at a fixed width. Everything around a passage stays unchanged: line ends, blank lines,
indents, marks of lists and quotations, tabs, and the blanks between columns. HTML tags that begin a line (`<p>`,
`<li>`) are also outside passages, unless the text was wrapped.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...text.spans import iter_spans
from ...text.tokenizer import LANGUAGE_TAG
from .encoded_text import Edit, decode_text, line_numbers
from .inline_markup import BLOCKS, tag_name, take_out_codes
from .text_ends import continues
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation

_LINE = re.compile(r"[^\r\n]+")
# Blanks and quotation marks of e-mail, but not a language tag, >>ita<<.
_INDENT = re.compile(rf"(?:[ \t]|(?!{LANGUAGE_TAG.pattern})>)*")
_MARKED = re.compile(rf"{_INDENT.pattern}(?:(?:[-–—*•·+]|\d{{1,3}}[.)])[ \t]+)?")
_COLUMN = re.compile(r"\S(?:(?! {3,}|\t).)*(?<=\S)")
_NARROWEST = 40  # characters; lines of poems, addresses and tables are shorter than wrapped prose


class Passage(NamedTuple):
    """A part that is translated as a whole: the characters from `start` to `end` of a text.

    If `width` is set, the passage consists of lines wrapped at this width: `text` has the lines joined by blanks, and
    lines after the first begin with `indent`. `first` is the length of the mark or indent before the first line.
    `newline` is the line end.
    """

    start: int
    end: int
    text: str
    width: int = 0
    first: int = 0
    indent: str = ""
    newline: str = "\n"

    def laid_out(self, translation: str) -> str:
        """Wrap the translation in lines like those of the original."""
        if not self.width:
            return translation
        return self.newline.join(_wrap(translation, self.width, " " * self.first, self.indent))[self.first :]


def find_passages(text: str, *, numbers: bool = False) -> Iterator[Passage]:
    """Find the passages of a text, in order.

    A line without a letter is not in a passage; with `numbers`, a digit is enough.
    """
    for paragraph in _paragraphs(list(_LINE.finditer(text))):
        wrapped = _wrapped_passage(paragraph)
        for passage in [wrapped] if wrapped else _columns(paragraph):
            if any(character.isalpha() or (numbers and character.isdigit()) for character in passage.text):
                yield passage


def _paragraphs(lines: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Group consecutive lines. A blank line, or a line with the mark of a list, begins a new group."""
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
    """Join lines into a passage if wrapping gives the same lines, and a sentence crosses a line end."""
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


_HAS_TEXTS = re.compile(r"\{[^{}]+(?:,|->)[^{}]*\{")  # {n, plural, one {# file} …}


class StringUnit:
    """A string without its inline tags, indents and other text around its passages. `text` has a line for each passage.

    The whole string is one unit, so that required spans (placeholders) may move from one line to another.
    """

    def __init__(self, string: str, *, numbers: bool = False) -> None:
        self.string, self._numbers = string, numbers
        passages = find_passages(string, numbers=numbers)
        self._passages = [passage for passage in passages if has_words(passage.text, numbers=numbers)]
        self._marked = take_out_codes("\n".join(passage.text for passage in self._passages))

    @property
    def has_words(self) -> bool:
        """True if there is something to translate."""
        return has_words(self._marked.text, numbers=self._numbers)

    def unit(self, key: str, reasons: tuple[str, ...] = ()) -> TranslationUnit:
        """Make the unit. `reasons` say why its translation needs a review."""
        return self._marked.unit(key, reasons)

    def translated(self, translation: UnitTranslation) -> str:
        """Write the string with translated passages.

        Each line of the translation fills one passage, and extra lines are joined to the last passage. A passage
        without a line becomes empty.
        """
        if not translation.changes(self.unit("")):
            return self.string
        lines = self._marked.restored(translation).split("\n", len(self._passages) - 1)
        lines[-1] = lines[-1].replace("\n", " ")
        lines += [""] * (len(self._passages) - len(lines))
        parts, position = [], 0
        for passage, line in zip(self._passages, lines, strict=True):
            parts += [self.string[position : passage.start], passage.laid_out(line)]
            position = passage.end
        return "".join([*parts, self.string[position:]])


def has_words(text: str, *, numbers: bool = False) -> bool:
    """Return True if a text has a letter, or a digit if `numbers` is set, outside its placeholders."""
    return any(
        character.isalpha() or (numbers and character.isdigit())
        for part in _between_placeholders(text)
        for character in part
    )


def is_same_in_all_languages(text: str) -> bool:
    """Return True if a text has no letter outside wordless placeholders, such as a number, or `%d: %s`."""
    return not has_words(text) and not any(_HAS_TEXTS.match(span.text) for span in iter_spans(text, ("placeholders",)))


def _between_placeholders(text: str) -> Iterator[str]:
    end = 0
    for span in iter_spans(text, ("placeholders",)):
        yield text[end : span.start]
        end = span.end
    yield text[end:]


def read_txt_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the passages of a text. Encoding, byte order mark, line ends, indents and blank lines are kept."""
    encoded = decode_text(data, options.encoding)
    passages = [
        (passage, marked)
        for passage in find_passages(encoded.text, numbers=options.numbers)
        if has_words((marked := take_out_codes(passage.text)).text, numbers=options.numbers)
    ]
    lines = line_numbers(encoded.text, (passage.start for passage, _ in passages))
    units = tuple(marked.unit(f"line {line}") for (_, marked), line in zip(passages, lines, strict=True))

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        return encoded.replaced(
            Edit(passage.start, passage.end, passage.laid_out(marked.restored(new)))
            for (passage, marked), unit, new in zip(passages, units, translations, strict=True)
            if new and new.changes(unit)
        )

    return Document(units, write)
