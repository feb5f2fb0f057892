"""The content of a paragraph as pieces: text, tags and points; and the blanks next to points.

A point is a place without translated content, such as a line break, an image or code. Each format converts its own
markup to and from pieces. All code in between works for every format.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple

MAX_SHOWN = 60  # characters of code in a sentence that the model reads; longer code is left out of the text
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
BLANKS = re.compile(r"[ \t\r\n\f]+")
# Split a text into blanks at its ends and the rest, because blanks next to a tag are separate pieces.
BLANK_PARTS = re.compile(r"[ \t\r\n\f]+|[^ \t\r\n\f](?:.*[^ \t\r\n\f])?", re.DOTALL)
_LETTER, _LETTER_OR_DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"[^\W_]")
_SIGN_BEFORE = re.compile(r"[(\[{«“„‘¿¡/]")
_SIGN_AFTER = re.compile(r"[.,;:!?)\]}»”’…/]")


StandsFor = Literal["", "word", "blank", "break"]


class Piece(NamedTuple):
    """Text, a tag or a point. Only the format that writes it looks at `source`.

    A "point" has no translated content. It may stand for a "word" (code in a sentence), a "blank" or a line "break";
    then it is separate from its neighbours even without a blank, and the model reads its `text`, if any, in its place.
    A unit ends at a "boundary". An "open" and a "close" with the same `name` belong together. A range that may cross
    tags, such as a bookmark, has two ends, which are points with the same `range`.
    """

    kind: Literal["text", "open", "close", "point", "boundary"]
    text: str = ""
    name: str = ""
    source: Any = None
    stands_for: StandsFor = ""
    range: str = ""


class Spacing(NamedTuple):
    """The characters next to a point: a blank (" "), another character or nothing (""); and the letters that touch it.

    Letters that touch an unchanged word, such as the s of `Promise`s, stay with that word.
    """

    before: str
    after: str
    prefix: str = ""
    suffix: str = ""


def opaque_point(content: str, source: object) -> Piece:
    """Make a point for content in a sentence that stays unchanged. The model reads the content only if it is short."""
    text = " ".join(content.split())
    return Piece("point", text if len(text) <= MAX_SHOWN else "", source=source, stands_for="word")


def tag_partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Pair the indices of opens and closes that belong together. The result has both directions."""
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


def find_notes(pieces: Sequence[Piece], partners: Mapping[int, int]) -> dict[int, int]:
    """Find the opens and closes of raised elements without a letter, such as marks of notes, and powers."""
    notes: dict[int, int] = {}
    opened: int | None = None
    for index, piece in enumerate(pieces):
        if piece.kind == "open" and piece.name in ("sup", "<sup>") and index in partners:
            opened = index
        elif piece.kind == "boundary" or _LETTER.search(piece.text):
            opened = None
        elif opened is not None and partners.get(index) == opened:
            notes[opened] = index
            opened = None
    return notes


def beside_text(pieces: Sequence[Piece], partners: Mapping[int, int]) -> set[int]:
    """Find the opens and closes next to text that is not blank, inside the same parent element and boundaries."""
    elements, boundaries = [-1], 0
    around: list[tuple[int, int]] = []
    with_text = set[tuple[int, int]]()
    for index, piece in enumerate(pieces):
        if piece.kind == "close" and index in partners:
            elements.pop()
        boundaries += piece.kind == "boundary"
        around.append((elements[-1], boundaries))
        if piece.kind == "open" and index in partners:
            elements.append(index)
        elif piece.text.strip():
            with_text.add(around[-1])
    return {index for index, element in enumerate(around) if element in with_text}


def is_translatable(text: str, *, numbers: bool = False) -> bool:
    """Return True if a text has a letter, or with `numbers` a digit, and no undecodable byte (a lone surrogate)."""
    return bool((_LETTER_OR_DIGIT if numbers else _LETTER).search(text)) and not LONE_SURROGATE.search(text)


def read_spacing(parts: Sequence[Piece], index: int) -> Spacing:
    """Return the characters next to a point. If another point is next to it, its text for the model counts."""
    before, after = _beside(parts, index)
    one = parts[before].text[-1:] if before >= 0 else ""
    other = parts[after].text[:1] if after < len(parts) else ""
    return Spacing(BLANKS.sub(" ", one), BLANKS.sub(" ", other))


def part_words(parts: list[Piece]) -> None:
    """Replace points that the model does not read, and all blanks around them, with one blank or none.

    Points in a row, with only tags and blanks in between, count as one point, which is a blank or break if any of them
    is.
    """
    for is_read, group in groupby(range(len(parts)), key=lambda index: _is_read(parts[index])):
        inside = list(group)
        points = [index for index in inside if parts[index].stands_for]
        if is_read or not points:
            continue
        before, after = inside[0] - 1, inside[-1] + 1
        spacing = Spacing(read_spacing(parts, points[0]).before, read_spacing(parts, points[-1]).after)
        is_inside = before >= 0 and after < len(parts)
        is_parted = is_inside and _is_apart({parts[index].stands_for for index in points}, spacing)
        texts = [index for index in range(max(before, 0), min(after + 1, len(parts))) if parts[index].kind == "text"]
        for index in texts:
            text = parts[index].text.rstrip(" ") if index < after else parts[index].text.lstrip(" ")
            parts[index] = parts[index]._replace(text=text)
        if is_parted and texts:
            last = parts[texts[-1]]
            parts[texts[-1]] = last._replace(text=" " + last.text if texts[-1] > before else last.text + " ")


def _is_read(part: Piece) -> bool:
    return part.kind in ("text", "point") and part.text.strip(" ") != ""


def _is_apart(stands_for: Collection[StandsFor], spacing: Spacing) -> bool:
    """Return True if the text has a blank in the place of points."""
    is_blank = "break" in stands_for or "blank" in stands_for
    if is_blank or _SIGN_AFTER.match(spacing.after):
        return is_blank
    return " " in spacing[:2] or (spacing.before.isalnum() and spacing.after.isalnum())


def restore_blanks(parts: list[Piece], index: int, source: Spacing) -> None:
    """Give a point in a translation the blanks that it had in the source, or that it needs in the translation.

    A text, which may be empty, must follow each point that stands for something, and each close.
    """
    here = read_spacing(parts, index)
    if parts[index].stands_for == "word":
        before = _needs_blank(source.before, here.before, _SIGN_BEFORE)
        after = _needs_blank(source.after, here.after, _SIGN_AFTER)
    else:
        before, after = source.before == " ", source.after == " "
    left, right = _neighbours(parts, index)
    if left is not None:
        parts[left] = parts[left]._replace(text=parts[left].text.rstrip(" "))
        _add_blank(parts, left, index, before)
    if right is not None:
        parts[right] = parts[right]._replace(text=parts[right].text.lstrip(" "))
        _add_blank(parts, index + 1, right, after)


def _add_blank(parts: list[Piece], text: int, end: int, blank: bool) -> None:
    """Add a blank to a text or, if tags close before `end`, to the text after the last of them."""
    at = max((index + 1 for index in range(text, end) if parts[index].kind == "close"), default=text)
    parts[at] = parts[at]._replace(text=parts[at].text + " " * blank)


def glue_letters(parts: list[Piece], index: int) -> tuple[str, str]:
    """Move the letters that touch a point into its text. Returns the letters before it and after it."""
    left, right = _neighbours(parts, index)
    prefix = first_letters(parts[left].text[::-1])[::-1] if left is not None else ""
    suffix = first_letters(parts[right].text) if right is not None else ""
    if left is not None:
        parts[left] = parts[left]._replace(text=parts[left].text.removesuffix(prefix))
    if right is not None:
        parts[right] = parts[right]._replace(text=parts[right].text.removeprefix(suffix))
    parts[index] = parts[index]._replace(text=prefix + parts[index].text + suffix)
    return prefix, suffix


def first_letters(text: str) -> str:
    """Return the letters, digits and underscores at the beginning of a text."""
    return "".join(takewhile(lambda character: character.isalnum() or character == "_", text))


def _needs_blank(source: str, here: str, sign: re.Pattern[str]) -> bool:
    """Return True if a word needs a blank between it and its new neighbouring character, `here`.

    In the source, the word's neighbour was `source`. `sign` matches signs that may touch a word.
    """
    if here in ("", " "):
        return here == " "
    return not sign.match(here) and (source == " " or (here.isalnum() and not source.isalnum()))


def _neighbours(parts: Sequence[Piece], index: int) -> tuple[int | None, int | None]:
    """Return the indices of the texts before and after a point.

    An index is None if a boundary, or another point that stands for something, comes first.
    """
    before, after = _beside(parts, index)
    return (
        before if before >= 0 and parts[before].kind == "text" else None,
        after if after < len(parts) and parts[after].kind == "text" else None,
    )


def _beside(parts: Sequence[Piece], index: int) -> tuple[int, int]:
    """Return the indices of the pieces before and after a point, skipping tags and points that stand for nothing.

    Comments and bookmarks, for example, stand for nothing. At the ends the indices are -1 and the number of pieces.
    """
    before, after = index - 1, index + 1
    while before >= 0 and _is_passed(parts[before]):
        before -= 1
    while after < len(parts) and _is_passed(parts[after]):
        after += 1
    return before, after


def _is_passed(part: Piece) -> bool:
    if part.kind == "point":
        return not part.stands_for
    return part.kind in ("open", "close") or (part.kind == "text" and not part.text)
