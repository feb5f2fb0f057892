"""Group the pieces of a paragraph into runs, which become units, and make the pieces of their translations."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from .pieces import (
    BLANKS,
    Piece,
    Spacing,
    glue_letters,
    is_translatable,
    part_words,
    read_spacing,
    restore_blanks,
    tag_partners,
)
from .text_ends import WORDS_TOUCH, find_text_ends
from .unit import Mark, TranslationUnit, UnitTranslation, interleave

MAX_RUN_TAGS = (
    200  # in a run; longer runs are cut between tags, because placing tags takes time in proportion to their number
)


@dataclass(frozen=True, slots=True)
class InlineRun:
    """The pieces from `start` to `end` of a paragraph, which form one unit.

    `tags` are the pieces of its tags by number: an open and its close, or a point.
    """

    start: int
    end: int
    pieces: tuple[Piece, ...]
    unit: TranslationUnit
    tags: dict[int, tuple[Piece, ...]]
    spacing: dict[int, Spacing]

    def translated(self, translation: UnitTranslation) -> list[Piece]:
        """Return the pieces of the translation: its text, which has no `source`, and the tags of this run."""
        parts: list[Piece] = []
        hidden: int | None = None  # the point without its text
        ends = defaultdict[str, list[int]](list)  # for each range; its ends must not change places
        for number, (piece, *_) in self.tags.items():
            ends[piece.range].append(number)
        for item in interleave(translation.text, translation.marks):
            if isinstance(item, Mark):
                piece = self.tags[item.tag][-1 if item.kind == "close" else 0]
                if piece.kind == "point":
                    hidden = item.tag if item.kind == "open" else None
                if piece.kind == "point" and piece.range:
                    number = ends[piece.range].pop(0)
                    parts.append(self.tags[number][0]._replace(text=str(number)))
                elif piece.kind != "point" or item.kind != "close":
                    parts += [piece._replace(text=str(item.tag)), Piece("text")]
            elif hidden is None:
                parts.append(Piece("text", item))
        for index, part in enumerate(parts):
            if part.kind == "point" and part.stands_for:
                restore_blanks(parts, index, self.spacing[int(part.text)])
        return [piece for part in parts for piece in self._glued(part)]

    def _glued(self, part: Piece) -> Iterator[Piece]:
        if part.kind != "point":
            yield part if part.kind == "text" else part._replace(text="")
            return
        spacing = self.spacing[int(part.text)]
        yield from (Piece("text", spacing.prefix), part._replace(text=""), Piece("text", spacing.suffix))


def inline_runs(
    pieces: Sequence[Piece], *, collapse: bool, key: str = "", numbers: bool = False
) -> Iterator[InlineRun]:
    """Find the runs of text between boundaries, without tags around a whole run.

    A run must contain a letter, or a digit if `numbers` is set. There is also a boundary wherever a text ends by
    `find_text_ends`, and at a tag without its partner between the same boundaries. With `collapse`, blanks in a row
    count as one, as in HTML. A range that crosses no tag and no boundary becomes a tag.
    """
    breaks, cuts, doubts = find_text_ends(pieces, tag_partners(pieces))
    lines = [piece._replace(kind="boundary") if index in breaks else piece for index, piece in enumerate(pieces)]
    pieces = _with_ranges(_with_boundaries(lines, cuts), cuts)
    partners = tag_partners(pieces)
    counts = [0, *accumulate(piece.kind in ("open", "point") for piece in pieces)]
    borders = [(i, i + 1) for i, piece in enumerate(pieces) if piece.kind == "boundary"] + [(i, i) for i in cuts]
    doubtful = sorted(doubts)
    start = 0
    for end, next_start in sorted([*borders, (len(pieces), len(pieces))]):
        for first, last in _short_runs(partners, counts, start, end):
            run = _trimmed(pieces, partners, first, last)
            trimmed = pieces[run.start : run.stop]
            if is_translatable("".join(piece.text for piece in trimmed if piece.kind == "text"), numbers=numbers):
                is_doubtful = bisect_left(doubtful, run.start + 1) < bisect_left(doubtful, run.stop)
                yield _inline_run(run, trimmed, collapse, key, (WORDS_TOUCH,) if is_doubtful else ())
        start = next_start


def translated_pieces(
    pieces: Sequence[Piece], runs: Sequence[InlineRun], translations: Iterator[UnitTranslation | None]
) -> list[Piece] | None:
    """Replace each run with the next translation. Returns None if no text changes."""
    result: list[Piece] = []
    position, is_changed = 0, False
    for run in runs:
        translation = next(translations)
        if translation and translation.changes(run.unit):
            result += [*pieces[position : run.start], *run.translated(translation)]
            position, is_changed = run.end, True
    return [*result, *pieces[position:]] if is_changed else None


def _with_boundaries(pieces: Sequence[Piece], cuts: Collection[int]) -> list[Piece]:
    """Add a boundary at each of `cuts`, and at each tag whose partner is missing or on the other side of a boundary."""
    partners = tag_partners(pieces)
    is_tag = [piece.kind in ("open", "close") for piece in pieces]
    boundaries: list[int] = []  # the number of boundaries before each piece
    count = 0
    for index, piece in enumerate(pieces):
        alone = is_tag[index] and index not in partners
        count += index in cuts
        boundaries.append(count)
        count += piece.kind == "boundary" or alone
    return [
        piece._replace(kind="boundary")
        if tag and (index not in partners or boundaries[index] != boundaries[partners[index]])
        else piece
        for index, (piece, tag) in enumerate(zip(pieces, is_tag, strict=True))
    ]


def _with_ranges(pieces: list[Piece], cuts: Collection[int]) -> list[Piece]:
    """Turn the ends of ranges into tags, if the ranges are nested in the tags and in each other."""
    opened: list[int] = []  # tags and starts of ranges
    starts: dict[str, int] = {}
    crossed = set[int]()
    for index, piece in enumerate(pieces):
        if piece.kind == "boundary" or index in cuts:
            opened.clear()
            starts.clear()
        if piece.kind == "boundary":
            continue
        if piece.kind == "open":
            opened.append(index)
        elif piece.kind == "close":
            while pieces[opened.pop()].kind != "open":
                pass
        elif piece.range not in starts:
            if piece.range:
                starts[piece.range] = index
                opened.append(index)
        else:
            start = starts.pop(piece.range)
            while opened and opened[-1] in crossed:
                opened.pop()
            if opened and opened[-1] == start:
                opened.pop()
                pieces[start] = pieces[start]._replace(kind="open", name=f"range {piece.range}")
                pieces[index] = piece._replace(kind="close", name=f"range {piece.range}")
            crossed.add(start)
    return pieces


def _short_runs(partners: Mapping[int, int], counts: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a run into parts of about `MAX_RUN_TAGS` tags: between tags, and at tags with more tags inside.

    `counts` has the number of tags before each piece.
    """
    ranges = [(start, end)]
    while ranges:
        start, end = ranges.pop()
        index = start
        while index < end:
            close = partners.get(index, index)
            if counts[close] - counts[index] > MAX_RUN_TAGS:
                yield start, index
                ranges += [(close + 1, end), (index + 1, close)]
                break
            index = close + 1
            if counts[index] - counts[start] >= MAX_RUN_TAGS:
                yield start, index
                start = index
        else:
            yield start, end


def _trimmed(pieces: Sequence[Piece], partners: Mapping[int, int], first: int, last: int) -> range:
    """Return the pieces from the first to the last with text, without tags that enclose all of them."""
    texts = [i for i in range(first, last) if pieces[i].text.strip()]
    if not texts:
        return range(0)
    start, end = texts[0], texts[-1] + 1
    # A tag with text inside and outside these bounds belongs to the run, so the run is widened to include it.
    before = [i for i in range(first, start) if pieces[i].kind == "open" and start <= partners[i] < end]
    after = [i for i in range(end, last) if pieces[i].kind == "close" and start <= partners[i] < end]
    return range(min(before, default=start), max(after, default=end - 1) + 1)


def _inline_run(run: range, pieces: Sequence[Piece], collapse: bool, key: str, reasons: tuple[str, ...]) -> InlineRun:
    parts = [one for index in range(len(pieces)) for one in _with_blank(pieces, index)]
    after_blank = False
    for index, part in enumerate(parts):
        if part.stands_for:
            after_blank = False
        elif part.kind == "text" and collapse:
            text = BLANKS.sub(" ", part.text)
            parts[index] = part._replace(text=text[1:] if after_blank and text.startswith(" ") else text)
            after_blank = parts[index].text.endswith(" ") or (after_blank and not parts[index].text)
    glued = {
        index: glue_letters(parts, index) for index, part in enumerate(parts) if part.kind == "point" and part.text
    }
    points = {index: read_spacing(parts, index) for index, part in enumerate(parts) if part.stands_for}
    points |= {index: points[index]._replace(prefix=one, suffix=other) for index, (one, other) in glued.items()}
    part_words(parts)
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
    unit = TranslationUnit(text=text, marks=tuple(marks), opaque=opaque, key=key, reasons=reasons)
    return InlineRun(run.start, run.stop, tuple(pieces), unit, tags, spacings)


def _with_blank(pieces: Sequence[Piece], index: int) -> tuple[Piece, ...]:
    """Return the piece at `index`. If it is a line break right before code, a blank follows.

    The code is a point (untranslated content), so no text after the break could begin with the blank.
    """
    piece = pieces[index]
    if piece.stands_for != "break":
        return (piece,)
    following = next((one for one in islice(pieces, index + 1, None) if one.text), None)
    return (piece, Piece("text", " ")) if following and following.kind == "point" else (piece,)


def _point_marks(number: int, at: int, text: str) -> list[Mark]:
    if not text:
        return [Mark(at, number, "point")]
    return [Mark(at, number, "open"), Mark(at + len(text), number, "close")]
