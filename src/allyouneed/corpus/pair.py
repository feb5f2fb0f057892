"""What every reader gives: a pair, or the place where one should have been and why it is none."""

from collections.abc import Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Fault(NamedTuple):
    """A line, counted from 1, that holds no pair; so many `lines` from there on are lost."""

    line: int
    reason: str
    lines: int = 1


Rows = Iterator[Pair | Fault]
