"""Strings with tags in them, `Click <b>here</b>`: as a text with marks, and back."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .line_breaks import LINE_BREAKS, End, with_blanks, without_blanks
from .unit import Mark, interleave

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
    partners = dict(_pairs([match.group() for match in matches]))
    text, position = "", 0
    marks: list[Mark] = []
    tags: dict[End, str] = {}
    for number, match in enumerate(matches):
        text += unescape(string[position : match.start()])
        position = match.end()
        partner = partners.get(number)
        if partner is None:
            mark = Mark(len(text), number, "point")
        else:
            mark = Mark(len(text), min(number, partner), "open" if number < partner else "close")
        marks.append(mark)
        tags[mark.tag, mark.kind] = match.group()
    breaks = {end for end, tag in tags.items() if tag_name(tag)[1] in LINE_BREAKS}
    return MarkedText(*with_blanks(text + unescape(string[position:]), marks, breaks), tags)


def tag_name(tag: str) -> tuple[bool, str]:
    """Whether a tag closes another, and its name in small letters."""
    match = re.match(r"[<{](/?)\\?([\w.:-]*)", tag)
    return (bool(match[1]), match[2].lower()) if match else (False, "")


def _pairs(tags: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Which tag closes which, both ways. One that is left open inside a pair has no partner."""
    open_tags: list[tuple[str, int]] = []
    names = Counter[str]()  # of the open tags
    for number, tag in enumerate(tags):
        closes, name = tag_name(tag)
        if not closes:
            open_tags.append((name, number))
            names[name] += 1
        while closes and names[name]:
            other, partner = open_tags.pop()
            names[other] -= 1
            if other == name:
                yield partner, number
                yield number, partner
                break
