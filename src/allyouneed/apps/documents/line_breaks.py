"""Tags that part words in HTML without a blank, `one<br>two`: the model reads a blank there, which is not written."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import islice, pairwise

from .unit import Mark

# Not all that HTML has: in a text, <address> or <option> is rather a word to fill in.
BLOCKS = frozenset([
    "blockquote", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
])  # fmt: skip
LINE_BREAKS = BLOCKS | {"br"}

End = tuple[int, str]  # the number of a tag, and the kind of its mark


def with_blanks(
    text: str, marks: Sequence[Mark], breaks: Collection[End]
) -> tuple[str, tuple[Mark, ...], frozenset[End]]:
    """The text with a blank after each mark of `breaks` that has none beside it; the marks; and those with a blank."""
    moved: list[Mark] = []
    blanks: dict[int, End] = {}  # of marks in the same place, for the first
    for mark in marks:
        moved.append(mark._replace(at=mark.at + len(blanks)))
        is_inside = 0 < mark.at < len(text) and not any(map(str.isspace, text[mark.at - 1 : mark.at + 1]))
        if is_inside and mark.at not in blanks and (mark.tag, mark.kind) in breaks:
            blanks[mark.at] = mark.tag, mark.kind
    parts = (text[start:end] for start, end in pairwise([0, *blanks, len(text)]))
    return " ".join(parts), tuple(moved), frozenset(blanks.values())


def without_blanks(text: str, marks: Sequence[Mark], blanks: Collection[End]) -> tuple[str, list[Mark]]:
    """The text, or its translation, without the blanks of these marks: each takes out one beside it."""
    cut = set[int]()
    for mark in marks:
        if (mark.tag, mark.kind) in blanks:
            beside = (at for at in (mark.at, mark.at - 1) if at >= 0 and text.startswith(" ", at) and at not in cut)
            cut |= set(islice(beside, 1))
    positions = sorted(cut)
    kept = "".join(character for at, character in enumerate(text) if at not in cut)
    return kept, [mark._replace(at=mark.at - bisect_left(positions, mark.at)) for mark in marks]
