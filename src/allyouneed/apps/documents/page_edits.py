"""Edits of a page by position, also within others: an attribute inside a text that is rewritten."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """New content for characters `start` to `end` of a page."""

    start: int
    end: int
    content: str


class Slice(NamedTuple):
    """Characters `start` to `end` of a page."""

    start: int
    end: int


def edited(page: str, span: Slice, edits: Sequence[Edit]) -> str:
    """Characters of a page with the edits inside them; `edits` are in their order.

    An edit inside another one is left out: the other one's content has it already.
    """
    parts = []
    position = span.start
    for edit in edits[bisect_left(edits, span.start, key=lambda edit: edit.start) :]:
        if edit.end > span.end:
            break
        if edit.start >= position:
            parts += [page[position : edit.start], edit.content]
            position = edit.end
    return "".join([*parts, page[position : span.end]])
