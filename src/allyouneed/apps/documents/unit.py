"""`Document`: the texts of a file as translation units, and how to write the file with translations.

A format is one file in this folder with one function, from the bytes of a file to a `Document`. The text of a unit is
plain: inline markup is taken out and kept separately as marks.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...text.normalize import UNSEEN, without_unseen


@dataclass(frozen=True, slots=True)
class TagRules:
    """Rules for tags by name. If a name has two rules, the first in the order of these fields counts.

    The content of `ignored` tags stays unchanged. A sentence ends at `splitting` tags and continues across
    `non_splitting` ones. With `outline` off, only `splitting` tags end a sentence in XML.
    """

    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    outline: bool = True

    def for_html(self) -> "TagRules":
        """Convert the names to lower case, because HTML ignores case."""

        def lower(names: Iterable[str]) -> frozenset[str]:
            return frozenset(name.lower() for name in names)

        return TagRules(lower(self.ignored), lower(self.splitting), lower(self.non_splitting), self.outline)


NO_RULES = TagRules()


class Mark(NamedTuple):
    """The place in a text where an inline tag opens or closes, or of a tag without content (a point, such as an image).

    The mark comes before character number `at` of the text. `tag` is the number of the tag in its unit; each tag has
    one "open" and one "close", or one "point".
    """

    at: int
    tag: int
    kind: Literal["open", "close", "point"]


Marks = tuple[Mark, ...]


def tag_mark(at: int, number: int, partner: int | None) -> Mark:
    """Make the mark of tag `number` in a text. `partner` is the number of the tag that it closes or that closes it."""
    if partner is None:
        return Mark(at, number, "point")
    return Mark(at, min(number, partner), "open" if number < partner else "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationUnit:
    """A text to translate: a paragraph, a message or a cell.

    `marks` are in document order, and nested. The model reads the content of `opaque` tags, such as code in a sentence,
    but it is written unchanged. `signs` are characters that the document writes as codes and that must come back. `key`
    says where in the document the unit is, for messages ("line 12"). `translation` is the translation that the document
    already has, which is kept, or None. If there are `reasons`, a person should look at the translation, however sure
    the model is. The text has no soft hyphens and other characters without width: these say how words of the source are
    broken, and no format writes them into a translation.
    """

    text: str
    marks: Marks = ()
    opaque: frozenset[int] = frozenset()
    signs: frozenset[str] = frozenset()
    key: str = ""
    translation: str | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if problem := nesting_problem(self.text, self.marks):
            raise ValueError(f"marks of {self.text!r:.60}: {problem}")
        seen = without_unseen(self.text)
        if seen != self.text:
            unseen = [at for match in UNSEEN.finditer(self.text) for at in range(*match.span())]
            object.__setattr__(
                self, "marks", tuple(m._replace(at=m.at - bisect_left(unseen, m.at)) for m in self.marks)
            )
            object.__setattr__(self, "text", seen)


@dataclass(frozen=True, slots=True)
class UnitTranslation:
    """The translation of a unit, with the unit's tags. `reasons` are phrases: why a person should review it."""

    text: str
    marks: Marks = ()
    reasons: tuple[str, ...] = ()

    def changes(self, unit: TranslationUnit) -> bool:
        """Return True if the translation differs from the unit's own text."""
        return (self.text, self.marks) != (unit.text, unit.marks)


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The options that a format needs besides the bytes. `target_language` is a code such as "pt-BR", or "" if unknown.

    `encoding` is for a text file without a byte order mark; "" means UTF-8, or the encoding that a page declares.
    `column` is the column of a table to translate, and `into` the column for the translations, by default the same; a
    column is a name or a number. In a JSON document, only strings whose path matches one of `keys` (`menu.*.title`) are
    translated; without `keys`, all are. `tags` are rules for HTML's tags. With `numbers`, texts without letters are
    also translated, such as dates in digits. Text is not translated if the document marks it as a language other than
    `source_language` and the document's own language.
    """

    target_language: str = ""
    encoding: str = ""
    column: str = ""
    into: str = ""
    keys: tuple[str, ...] = ()
    tags: TagRules = NO_RULES
    numbers: bool = False
    source_language: str = ""


class LeftOutText(NamedTuple):
    """A text with words that belongs to no unit and so stays unchanged: its place in the document, and the reason."""

    key: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """The units of a file, and the function `write` that makes the file with a translation for each unit, in order.

    A translation of None leaves a unit unchanged; with None for all units, the file keeps its bytes. `problem` says why
    the file cannot hold a translation of the unit with this index, or ""; `write` leaves such a unit unchanged.
    `left_out` are texts that cannot be translated at all, for the summary. With `copies_numbers` the format does not
    have the option `numbers`. `target_language` is the language in the options.
    """

    units: tuple[TranslationUnit, ...]
    write: Callable[[Sequence[UnitTranslation | None]], bytes]
    problem: Callable[[int, UnitTranslation], str] = lambda number, translation: ""
    left_out: tuple[LeftOutText, ...] = ()
    copies_numbers: bool = False
    target_language: str = ""


Reader = Callable[[bytes, DocumentOptions], Document]


def nesting_problem(text: str, marks: Sequence[Mark]) -> str:
    """Describe a fault in the marks of a text: wrong order or nesting, or a tag not used exactly once; "" if none."""
    open_tags: list[int] = []
    seen: set[int] = set()
    previous = 0
    for mark in marks:
        if not previous <= mark.at <= len(text):
            return f"{mark} is out of order or outside the text"
        previous = mark.at
        if mark.kind == "close":
            if not open_tags or open_tags.pop() != mark.tag:
                return f"{mark} closes no tag that is open"
            continue
        if mark.tag in seen:
            return f"{mark} is there twice"
        seen.add(mark.tag)
        if mark.kind == "open":
            open_tags.append(mark.tag)
    return f"tag {open_tags[-1]} is not closed" if open_tags else ""


def interleave(text: str, marks: Sequence[Mark]) -> Iterator[str | Mark]:
    """Yield the parts of a text and its marks, in order. No part is empty."""
    start = 0
    for mark in marks:
        if mark.at > start:
            yield text[start : mark.at]
            start = mark.at
        yield mark
    if start < len(text):
        yield text[start:]
