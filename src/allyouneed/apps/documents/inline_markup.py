"""Read strings with codes in them, such as `Click <b>here</b>`, as text with marks, and write them back.

A code is not text, and a translation keeps every code: tags, references to blanks (`&nbsp;`), and line breaks written
with a backslash. Other HTML references (`&amp;`) are read as characters, and written in the way the string writes them.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from html.entities import html5
from itertools import islice, pairwise
from typing import Any, NamedTuple

from ...text.spans import iter_spans
from .pieces import Piece, tag_partners
from .text_ends import WORDS_TOUCH, find_text_ends
from .unit import Mark, TranslationUnit, UnitTranslation, interleave, tag_mark

_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_IN_WORDS = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")  # characters without width, except direction marks
_OF_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def referenced_character(reference: str) -> str:
    """Return the character that HTML shows for a reference (`&rarr;`); "" if it is unknown or several characters."""
    if not _REFERENCE.fullmatch(reference):
        return ""
    character = unescape(reference) if reference[1] == "#" else html5.get(reference[1:], "")
    # That character stands for an invalid reference.
    is_one = len(character) == 1 and character != "\N{REPLACEMENT CHARACTER}"
    return character if is_one and unicodedata.category(character) not in ("Cn", "Co") else ""


def is_text(character: str) -> bool:
    """Return True if a character is part of a word or a sign, and not a blank, a line end or a direction mark."""
    return character in _IN_WORDS or unicodedata.category(character)[0] not in "CZ"


class CharacterReferences:
    """The character references in the parts of one string.

    A string with references is HTML, so its translation also writes new markup signs as references. With `is_markup`,
    any string is HTML.
    """

    def __init__(self, *, is_markup: bool = False) -> None:
        self._is_markup = is_markup
        self._read: list[tuple[str, str]] = []  # (characters, how the string writes them), in order

    def read(self, text: str) -> str:
        """Read a part of the string, and replace references with their characters."""
        position, read = 0, len(self._read)
        for match in _REFERENCE.finditer(text):
            character = referenced_character(match.group())
            if character and is_text(character):
                self._read += [(bare := text[position : match.start()], bare), (character, match.group())]
                position = match.end()
        self._read.append((text[position:], text[position:]))
        return "".join(character for character, _ in self._read[read:])

    @property
    def signs(self) -> frozenset[str]:
        """The characters that the string writes as character references."""
        return frozenset(character for character, written in self._read if character != written)

    def writer(self) -> Callable[[str], str]:
        """Return a function that writes the parts of a translation, in order.

        The first `&` of the translation is written like the first `&` of the string, and so on. Any additional `&` is
        written as a reference if the string does so elsewhere.
        """
        signs = self.signs
        forms = defaultdict[str, list[str]](list)  # how the string writes each sign, in order
        for characters, written in self._read:
            for character in characters:
                if character in signs or character in _OF_MARKUP:
                    forms[character].append(written if characters != written else character)
        references = {character: written for character, written in self._read if character != written}
        if signs or self._is_markup:
            references = {sign: reference for sign, reference in _OF_MARKUP.items() if sign not in forms} | references
        if not references:
            return str
        remaining = {sign: iter(written) for sign, written in forms.items()}

        def write(match: re.Match[str]) -> str:
            sign = match.group()
            return next(remaining.get(sign, iter(())), references[sign])

        return partial(re.compile(f"[{re.escape(''.join(references))}]").sub, write)


# Not all HTML elements: in a text, <address> or <option> is more likely a word to fill in.
BLOCKS = frozenset([
    "blockquote", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
])  # fmt: skip
LINE_BREAKS = BLOCKS | {"br"}

End = tuple[int, str]  # the number of a tag, and the kind of its mark


def with_blanks(
    text: str, marks: Sequence[Mark], breaks: Collection[End]
) -> tuple[str, tuple[Mark, ...], dict[End, str]]:
    """Add a blank after each mark of `breaks` that has no blank next to it.

    Returns the text, its marks, and the marks with a blank.
    """
    moved: list[Mark] = []
    blanks: dict[int, End] = {}  # if several marks share a place, the first one gets the blank
    for mark in marks:
        moved.append(mark._replace(at=mark.at + len(blanks)))
        is_inside = 0 < mark.at < len(text) and not any(map(str.isspace, text[mark.at - 1 : mark.at + 1]))
        if is_inside and mark.at not in blanks and (mark.tag, mark.kind) in breaks:
            blanks[mark.at] = mark.tag, mark.kind
    parts = (text[start:end] for start, end in pairwise([0, *blanks, len(text)]))
    return " ".join(parts), tuple(moved), dict.fromkeys(blanks.values(), " ")


def without_blanks(text: str, marks: Sequence[Mark], blanks: Mapping[End, str]) -> tuple[str, list[Mark]]:
    """Remove the blanks or line ends next to these marks, from the text or its translation.

    Each mark removes one of them.
    """
    cut = set[int]()
    for mark in marks:
        if blank := blanks.get((mark.tag, mark.kind)):
            beside = (at for at in (mark.at, mark.at - 1) if at >= 0 and text.startswith(blank, at) and at not in cut)
            cut |= set(islice(beside, 1))
    positions = sorted(cut)
    kept = "".join(character for at, character in enumerate(text) if at not in cut)
    return kept, [mark._replace(at=mark.at - bisect_left(positions, mark.at)) for mark in marks]


# The reading of a word in ruby, with parentheses for programs that show it inline. It is not part of the text.
_FALLBACK = r"(?:<rp\b[^<>]*+>[^<>]*+(?:</rp\s*+>)?+)?+"
_READING = re.compile(rf"({_FALLBACK}<rt\b[^<>]*+>)([^<>\r\n]*+)((?:</rt\s*+>)?+{_FALLBACK})", re.IGNORECASE)
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n")


class Ruby(NamedTuple):
    """The reading of a word (`<rt>`): the tags before it, its text, and the tags after it."""

    before: str
    text: str
    after: str


def read_codes(string: str, references: CharacterReferences, breaks: str = "") -> Iterator[Piece]:
    """Yield the texts of a string, with references read as characters, and its codes, in order.

    The source of a code is its written form, or a `Ruby`. `breaks` is a pattern of additional codes for line breaks.
    """
    end = 0
    for span in iter_spans(string, ("tags", "placeholders")):
        if span.start < end:
            continue
        reading = _READING.match(string, span.start)
        code = _code(span.kind, span.text)
        if reading:
            has_words = any(map(str.isalpha, reading[2]))
            code = Piece("point", source=Ruby(*reading.groups()) if has_words else reading.group())
        if code:
            yield from _texts(string[end : span.start], references, breaks)
            yield code
            end = span.end if reading is None else reading.end()
    yield from _texts(string[end:], references, breaks)


def _code(kind: str, text: str) -> Piece | None:
    """Return the code for a tag or placeholder; None if it stays in the text."""
    if kind == "tags":
        closes, name = tag_name(text)
        is_break = name in LINE_BREAKS or _ESCAPED_BREAK.fullmatch(text) is not None
        return Piece("close" if closes else "open", name=name, source=text, stands_for="break" if is_break else "")
    character = referenced_character(text)
    if not character or is_text(character):
        return None
    return Piece("point", source=text, stands_for="blank" if character.isspace() else "")


def _texts(string: str, references: CharacterReferences, breaks: str) -> Iterator[Piece]:
    for number, part in enumerate(re.split(f"({breaks})", string) if breaks else [string]):
        if number % 2:
            yield Piece("point", source=part, stands_for="break")
        elif part:
            yield Piece("text", references.read(part))


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text without its codes, the marks in their places, and the written form of each code by kind of mark.

    `blanks` are the marks at which the text has a blank in place of a line break, or a line end because another text
    begins there (`find_text_ends`). `readings` are separate texts. With `is_doubtful`, two words may have been read as
    one word. `write` writes the texts of a translation, one after another, each once.
    """

    text: str
    marks: tuple[Mark, ...]
    blanks: Mapping[End, str]
    sources: Mapping[End, Any]
    readings: Mapping[End, Ruby]
    references: CharacterReferences = field(compare=False)
    is_doubtful: bool = False
    write: Callable[[str], str] = field(default=str, compare=False)

    def unit(self, key: str, reasons: tuple[str, ...] = ()) -> TranslationUnit:
        """Make the unit to translate, with the lines of the text and a line for each reading."""
        readings = (CharacterReferences().read(reading.text) for reading in self.readings.values())
        text = "\n".join([self.text, *readings])
        reasons = (*reasons, WORDS_TOUCH) if self.is_doubtful else reasons
        return TranslationUnit(text=text, marks=self.marks, key=key, reasons=reasons, signs=self.references.signs)

    def rewritten(self, translation: UnitTranslation) -> "MarkedText":
        """Return a copy with the translation in place of the source."""
        lines = translation.text.split("\n")
        count = self.text.count("\n") + 1 if self.readings else len(lines)
        text = "\n".join(lines[:count])
        sources = dict(self.sources)
        for (end, reading), line in zip(self.readings.items(), lines[count:], strict=False):
            references = CharacterReferences()
            references.read(reading.text)
            sources[end] = "".join(reading._replace(text=references.writer()(line)))
        marks = tuple(mark._replace(at=min(mark.at, len(text))) for mark in translation.marks)
        return replace(self, text=text, marks=marks, sources=sources, write=self.references.writer())

    def restored(self, translation: UnitTranslation) -> str:
        """Write a translation of the unit with its codes."""
        new = self.rewritten(translation)
        return new.written(new.text, new.marks)

    def parts(self, text: str, marks: Sequence[Mark]) -> Iterator[str | Mark]:
        """Yield a part of the text as written texts and marks, without the blanks that replace codes."""
        for part in interleave(*without_blanks(text, marks, self.blanks)):
            yield self.write(part) if isinstance(part, str) else part

    def written(self, text: str, marks: Sequence[Mark]) -> str:
        """Write a part of the text as a string."""
        parts = self.parts(text, marks)
        return "".join(part if isinstance(part, str) else self.sources[part.tag, part.kind] for part in parts)


def take_out_codes(string: str, *, is_markup: bool = False, breaks: str = "") -> MarkedText:
    """Replace the codes of a string with marks. A tag without its other end becomes a point."""
    references = CharacterReferences(is_markup=is_markup)
    return marked_text(read_codes(string, references, breaks), references)


def marked_text(
    pieces: Iterable[Piece],
    references: CharacterReferences,
    partners: Callable[[Sequence[Piece]], Mapping[int, int]] = tag_partners,
) -> MarkedText:
    """Join texts and codes into a marked text. `partners` pairs the indices of codes that close each other."""
    pieces = list(pieces)
    numbers = [index for index, piece in enumerate(pieces) if piece.kind != "text"]  # indices of the codes
    partner = partners([pieces[index] for index in numbers])
    ends = find_text_ends(pieces, {numbers[one]: numbers[other] for one, other in partner.items()})
    text = ""
    marks: list[Mark] = []
    lines: dict[End, str] = {}
    for index, piece in enumerate(pieces):
        is_break = index in ends.breaks and index - 1 not in ends.breaks
        if index in ends.cuts and marks and marks[-1].at == len(text):
            lines[marks[-1].tag, marks[-1].kind] = "\n"
            text += "\n"
        if piece.kind == "text":
            text += piece.text
            continue
        number = len(marks)
        mark = tag_mark(len(text), number, partner.get(number))
        if index in ends.cuts and not text.endswith("\n"):
            lines[mark.tag, mark.kind] = "\n"
            text += "\n"
            mark = mark._replace(at=len(text))
        marks.append(mark)
        if is_break and not text.endswith("\n"):
            lines[mark.tag, mark.kind] = "\n"
            text += "\n"
    by_end: dict[End, Piece] = {
        (mark.tag, mark.kind): pieces[index] for mark, index in zip(marks, numbers, strict=True)
    }
    breaks = {end for end, code in by_end.items() if code.stands_for in ("blank", "break")}
    sources = {end: code.source for end, code in by_end.items()}
    readings = {end: source for end, source in sources.items() if isinstance(source, Ruby)}
    sources |= {end: "".join(reading) for end, reading in readings.items()}
    text, placed, blanks = with_blanks(text, marks, breaks)
    return MarkedText(text, placed, blanks | lines, sources, readings, references, bool(ends.doubts))


def tag_name(tag: str) -> tuple[bool, str]:
    """Return True if a tag closes another, and the name of the tag in small letters."""
    match = re.match(r"[<{](/?)\\?([\w.:-]*)", tag)
    return (bool(match[1]), match[2].lower()) if match else (False, "")
