"""The content of a paragraph as pieces (text, tags, points) → runs that become units, and back.

A format turns its own markup into pieces and writes pieces out again; what is between is the same for all.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from .unit import Mark, TranslationUnit, UnitTranslation, interleave

MAX_SHOWN = 60  # characters of code in a sentence that the model reads; longer code is left out of the text
MAX_TAGS = 200  # of a run; longer ones are cut between tags, as placing tags takes time in proportion to their number


class Piece(NamedTuple):
    """Text, or a tag. `source` is what the format needs to write it; it is not looked into here.

    A "point" has no content that is translated. One that stands for a "word" (code in a sentence) or a "break" (of a
    line, a tab) is apart from its neighbours even where no blank says so; its `text`, if it has one, is what the model
    reads in its place. At a "boundary" a unit ends. An "open" and a "close" belong together if they have the same
    `name`.
    """

    kind: Literal["text", "open", "close", "point", "boundary"]
    text: str = ""
    name: str = ""
    source: Any = None
    stands_for: Literal["", "word", "break"] = ""


def opaque_point(content: str, source: object) -> Piece:
    """The point for content within a sentence that stays as it is: a model reads it only if it is short."""
    text = " ".join(content.split())
    return Piece("point", text if len(text) <= MAX_SHOWN else "", source=source, stands_for="word")


class Spacing(NamedTuple):
    """What is beside a point: a blank (" "), another character, or nothing (""); and the letters that touch it.

    Letters that touch a word which stays as it is, such as the s of `Promise`s, stay with it.
    """

    before: str
    after: str
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class InlineRun:
    """The pieces `start` to `end` of those read, which are one unit.

    `tags` are its tags' pieces by number: an open and its close, or a point.
    """

    start: int
    end: int
    pieces: tuple[Piece, ...]
    unit: TranslationUnit
    tags: dict[int, tuple[Piece, ...]]
    spacing: dict[int, Spacing]

    def translated(self, translation: UnitTranslation) -> list[Piece]:
        """The pieces of the translation: its text, which has no `source`, and the tags of this run."""
        parts: list[Piece] = []
        hidden: int | None = None  # the point whose text is left out
        for item in interleave(translation.text, translation.marks):
            if isinstance(item, Mark):
                piece = self.tags[item.tag][-1 if item.kind == "close" else 0]
                if piece.kind == "point":
                    hidden = item.tag if item.kind == "open" else None
                if piece.kind != "point" or item.kind != "close":
                    parts.append(piece._replace(text=str(item.tag)))
            elif hidden is None:
                parts.append(Piece("text", item))
        for index, part in enumerate(parts):
            if part.kind == "point" and part.stands_for:
                spacing, here = self.spacing[int(part.text)], _spacing(parts, index)
                if part.stands_for == "word":
                    before = _needs_blank(spacing.before, here.before, _SIGN_BEFORE)
                    after = _needs_blank(spacing.after, here.after, _SIGN_AFTER)
                else:
                    before, after = spacing.before == " ", spacing.after == " "
                _set_blanks(parts, index, before, after)
        return [piece for part in parts for piece in self._glued(part)]

    def _glued(self, part: Piece) -> Iterator[Piece]:
        if part.kind != "point":
            yield part if part.kind == "text" else part._replace(text="")
            return
        spacing = self.spacing[int(part.text)]
        yield from (Piece("text", spacing.prefix), part._replace(text=""), Piece("text", spacing.suffix))


def inline_runs(pieces: Sequence[Piece], *, collapse: bool, key: str = "") -> Iterator[InlineRun]:
    """The runs of text between boundaries that have a letter, without the tags around all of it.

    A tag without its partner between the same boundaries is a boundary too. With `collapse` blanks in a row are one
    blank, as in HTML.
    """
    pieces = _with_boundaries(pieces)
    partners = _partners(pieces)
    counts = [0, *accumulate(piece.kind in ("open", "point") for piece in pieces)]
    start = 0
    for boundary in [*(i for i, piece in enumerate(pieces) if piece.kind == "boundary"), len(pieces)]:
        for first, last in _short_runs(pieces, partners, counts, start, boundary):
            run = _trimmed(pieces, partners, first, last)
            trimmed = pieces[run.start : run.stop]
            if is_translatable("".join(piece.text for piece in trimmed if piece.kind == "text")):
                yield _inline_run(run, trimmed, collapse, key)
        start = boundary + 1


def translated_pieces(
    pieces: Sequence[Piece], runs: Sequence[InlineRun], translations: Iterator[UnitTranslation | None]
) -> list[Piece] | None:
    """The pieces with the next translation for each run; None if no text changes."""
    result: list[Piece] = []
    position, is_changed = 0, False
    for run in runs:
        translation = next(translations)
        if translation and (translation.text, translation.marks) != (run.unit.text, run.unit.marks):
            result += [*pieces[position : run.start], *run.translated(translation)]
            position, is_changed = run.end, True
    return [*result, *pieces[position:]] if is_changed else None


def is_translatable(text: str) -> bool:
    """Whether a text has a letter, and none of the lone surrogates that stand for bytes outside the encoding."""
    return bool(_LETTER.search(text)) and not LONE_SURROGATE.search(text)


LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LETTER = re.compile(r"[^\W\d_]")
_BLANKS = re.compile(r"[ \t\r\n\f]+")
# A text in its blanks at both ends and what is between: blanks beside a tag are pieces of their own.
BLANK_PARTS = re.compile(r"[ \t\r\n\f]+|[^ \t\r\n\f](?:.*[^ \t\r\n\f])?", re.DOTALL)
_SIGN_BEFORE = re.compile(r"[(\[{«“„‘¿¡/]")
_SIGN_AFTER = re.compile(r"[.,;:!?)\]}»”’…/]")


def _partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """The indices of the opens and closes that belong together, in both directions."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    count: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            opened.append(index)
            count[piece.name] = count.get(piece.name, 0) + 1
        elif piece.kind == "close" and count.get(piece.name):
            while True:
                candidate = opened.pop()
                count[pieces[candidate].name] -= 1
                if pieces[candidate].name == piece.name:
                    partners[candidate], partners[index] = index, candidate
                    break
    return partners


def _with_boundaries(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a boundary for each tag whose partner is missing or beyond a boundary."""
    partners = _partners(pieces)
    is_tag = [piece.kind in ("open", "close") for piece in pieces]
    boundaries = [0]
    for index, piece in enumerate(pieces):
        alone = is_tag[index] and index not in partners
        boundaries.append(boundaries[-1] + (piece.kind == "boundary" or alone))
    return [
        piece._replace(kind="boundary")
        if tag and (index not in partners or boundaries[index] != boundaries[partners[index]])
        else piece
        for index, (piece, tag) in enumerate(zip(pieces, is_tag, strict=True))
    ]


def _short_runs(
    pieces: Sequence[Piece], partners: Mapping[int, int], counts: Sequence[int], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """A run in parts of about `MAX_TAGS` tags: cut between tags, and at tags that have more inside.

    `counts` says how many tags there are before each piece.
    """
    ranges = [(start, end)]
    while ranges:
        start, end = ranges.pop()
        index = start
        while index < end:
            close = partners.get(index, index)
            if counts[close] - counts[index] > MAX_TAGS:
                yield start, index
                ranges += [(close + 1, end), (index + 1, close)]
                break
            index = close + 1
            if counts[index] - counts[start] >= MAX_TAGS:
                yield start, index
                start = index
        else:
            yield start, end


def _trimmed(pieces: Sequence[Piece], partners: Mapping[int, int], first: int, last: int) -> range:
    """The pieces from the first that is read to the last, without the tags around all of them."""
    texts = [i for i in range(first, last) if pieces[i].text.strip()]
    if not texts:
        return range(0)
    start, end = texts[0], texts[-1] + 1
    # A tag that has text inside and outside these bounds belongs to the run; widen it to such tags.
    before = [i for i in range(first, start) if pieces[i].kind == "open" and start <= partners[i] < end]
    after = [i for i in range(end, last) if pieces[i].kind == "close" and start <= partners[i] < end]
    return range(min(before, default=start), max(after, default=end - 1) + 1)


def _inline_run(run: range, pieces: Sequence[Piece], collapse: bool, key: str) -> InlineRun:
    parts = list(pieces)
    after_blank = False
    for index, part in enumerate(parts):
        if part.stands_for:
            after_blank = False
        elif part.kind == "text" and collapse:
            text = _BLANKS.sub(" ", part.text)
            parts[index] = part._replace(text=text[1:] if after_blank and text.startswith(" ") else text)
            after_blank = parts[index].text.endswith(" ") or (after_blank and not parts[index].text)
    glued = {index: _glue(parts, index) for index, part in enumerate(parts) if part.kind == "point" and part.text}
    points = {index: _spacing(parts, index) for index, part in enumerate(parts) if part.stands_for}
    points |= {index: points[index]._replace(prefix=one, suffix=other) for index, (one, other) in glued.items()}
    for index, spacing in points.items():
        if not parts[index].text:
            _set_blanks(parts, index, False, _is_apart(parts[index], spacing))
    tags: dict[int, tuple[Piece, ...]] = {}
    marks: list[Mark] = []
    open_tags: list[int] = []
    spacings: dict[int, Spacing] = {}
    length = 0
    for index, part in enumerate(parts):
        if part.kind == "text":
            length += len(part.text)
        elif part.kind == "close":
            number = open_tags.pop()
            tags[number] = (*tags[number], part)
            marks.append(Mark(length, number, "close"))
        else:
            number = len(tags)
            tags[number] = (part,)
            if part.kind == "open":
                open_tags.append(number)
                marks.append(Mark(length, number, "open"))
            else:
                spacings[number] = points.get(index, Spacing("", ""))
                marks += _point_marks(number, length, part.text)
                length += len(part.text)
    text = "".join(part.text for part in parts)
    opaque = frozenset(number for number, (first, *_) in tags.items() if first.kind == "point" and first.text)
    unit = TranslationUnit(text=text, marks=tuple(marks), opaque=opaque, key=key)
    return InlineRun(run.start, run.stop, tuple(pieces), unit, tags, spacings)


def _glue(parts: list[Piece], index: int) -> tuple[str, str]:
    """Move the letters that touch a point into its text, and return those before and after it."""
    left, right = _neighbours(parts, index)
    touching = re.search(r"\w*\Z", parts[left].text if left is not None else "")
    following = re.match(r"\w*", parts[right].text if right is not None else "")
    prefix, suffix = (match.group() if match else "" for match in (touching, following))
    if left is not None:
        parts[left] = parts[left]._replace(text=parts[left].text.removesuffix(prefix))
    if right is not None:
        parts[right] = parts[right]._replace(text=parts[right].text.removeprefix(suffix))
    parts[index] = parts[index]._replace(text=prefix + parts[index].text + suffix)
    return prefix, suffix


def _point_marks(number: int, at: int, text: str) -> list[Mark]:
    if not text:
        return [Mark(at, number, "point")]
    return [Mark(at, number, "open"), Mark(at + len(text), number, "close")]


def _is_apart(point: Piece, spacing: Spacing) -> bool:
    """Whether the text has a blank in place of a point."""
    sides = spacing.before, spacing.after
    if "" in sides or (point.stands_for == "word" and _SIGN_AFTER.match(spacing.after)):
        return False
    return " " in sides or point.stands_for == "break" or (spacing.before.isalnum() and spacing.after.isalnum())


def _needs_blank(source: str, here: str, sign: re.Pattern[str]) -> bool:
    """Whether a word that is put beside the character `here` is parted from it by a blank.

    It stood beside `source`; `sign` matches those that touch a word.
    """
    if here in ("", " "):
        return here == " "
    return not sign.match(here) and (source == " " or (here.isalnum() and not source.isalnum()))


def _neighbours(parts: Sequence[Piece], index: int) -> tuple[int | None, int | None]:
    """The texts before and after a point; None at a boundary or another point."""
    before, after = index - 1, index + 1
    while before >= 0 and _is_passed(parts[before]):
        before -= 1
    while after < len(parts) and _is_passed(parts[after]):
        after += 1
    return (
        before if before >= 0 and parts[before].kind == "text" else None,
        after if after < len(parts) and parts[after].kind == "text" else None,
    )


def _is_passed(part: Piece) -> bool:
    return part.kind in ("open", "close") or (part.kind == "text" and not part.text)


def _spacing(parts: Sequence[Piece], index: int) -> Spacing:
    before, after = _neighbours(parts, index)
    one = parts[before].text[-1] if before is not None else ""
    other = parts[after].text[0] if after is not None else ""
    return Spacing(_BLANKS.sub(" ", one), _BLANKS.sub(" ", other))


def _set_blanks(parts: list[Piece], index: int, before: bool, after: bool) -> None:
    left, right = _neighbours(parts, index)
    if left is not None:
        parts[left] = parts[left]._replace(text=parts[left].text.rstrip(" ") + " " * before)
    if right is not None:
        parts[right] = parts[right]._replace(text=" " * after + parts[right].text.lstrip(" "))
