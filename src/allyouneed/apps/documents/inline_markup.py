"""Strings with tags in them, `Click <b>here</b>`: as a text with marks, and back."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .line_breaks import LINE_BREAKS, End, with_blanks, without_blanks
from .pieces import Piece, tag_partners
from .unit import Mark, interleave, tag_mark

PLACEHOLDER = re.compile(r"%(?:\(\w+\)|\d\$)?[\d.]*\w|\{[^{}]*\}")  # of printf, Python, ICU, Qt and the like
TAG = r"</?(?:[A-Za-z][^<>\n]*+|\d++\s*+/?)>"


class MarkedText(NamedTuple):
    """A text without its tags, the marks where they were, and what stands for each kind of mark of each tag.

    `blanks` are the marks where the text has a blank instead of a line break.
    """

    text: str
    marks: tuple[Mark, ...]
    blanks: frozenset[End]
    tags: dict[End, str]

    def restored(self, text: str, marks: Sequence[Mark], escape: Callable[[str], str] = str) -> str:
        """A translation with the tags written out, and what is between them escaped."""
        return "".join(
            escape(part) if isinstance(part, str) else self.tags[part.tag, part.kind]
            for part in interleave(*without_blanks(text, marks, self.blanks))
        )


def take_out_tags(string: str, pattern: str = TAG, unescape: Callable[[str], str] = str) -> MarkedText:
    """The string with its tags as marks. A tag without its other end is a point. What is between them is unescaped."""
    matches = list(re.finditer(pattern, string))
    ends = (tag_name(match.group()) for match in matches)
    partners = tag_partners([Piece("close" if closes else "open", name=name) for closes, name in ends])
    text, position = "", 0
    marks: list[Mark] = []
    tags: dict[End, str] = {}
    for number, match in enumerate(matches):
        text += unescape(string[position : match.start()])
        position = match.end()
        mark = tag_mark(len(text), number, partners.get(number))
        marks.append(mark)
        tags[mark.tag, mark.kind] = match.group()
    breaks = {end for end, tag in tags.items() if tag_name(tag)[1] in LINE_BREAKS}
    return MarkedText(*with_blanks(text + unescape(string[position:]), marks, breaks), tags)


def tag_name(tag: str) -> tuple[bool, str]:
    """Whether a tag closes another, and its name in small letters."""
    match = re.match(r"[<{](/?)\\?([\w.:-]*)", tag)
    return (bool(match[1]), match[2].lower()) if match else (False, "")
