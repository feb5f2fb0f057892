"""What every reader gives: a pair, or the place where one should have been and why it is none."""

from collections.abc import Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Fault(NamedTuple):
    """A line, counted from 1, that holds no pair."""

    line: int
    reason: str


Rows = Iterator[Pair | Fault]
