"""What a reader yields: pairs, and faults, which are lines without a pair."""

from collections.abc import Iterator
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Fault(NamedTuple):
    """A line, counted from 1, without a pair, and the reason; `lines` lines from there on are skipped."""

    line: int
    reason: str
    lines: int = 1


Rows = Iterator[Pair | Fault]
