"""What every reader yields: a pair, or a fault: the line that has none, and why."""

from collections.abc import Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Fault(NamedTuple):
    """A line, counted from 1, without a pair; `lines` lines from there on are lost."""

    line: int
    reason: str
    lines: int = 1


Rows = Iterator[Pair | Fault]
