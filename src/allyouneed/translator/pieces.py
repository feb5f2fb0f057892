"""What is translated at once, and which of it together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..decode import beam_width
from .finding import Wanted


class Piece(NamedTuple):
    """Text number `place` of a window, or a part of it."""

    place: int
    text: str
    wanted: Wanted


def in_batches(pieces: Sequence[Piece], *, size: int, beam: int, branches: int) -> Iterator[list[int]]:
    """Numbers of pieces of similar length, those with demands among themselves: they have wider beams.

    A batch has as many hypotheses as `size` pieces without demands or branches have.
    """
    for bound in (False, True):
        batch: list[int] = []
        taken = 0
        for i in sorted(range(len(pieces)), key=lambda i: len(pieces[i].wanted.source)):
            demands = pieces[i].wanted.demands
            if bool(demands) == bound:
                width = beam_width(beam, demands) * branches
                if batch and taken + width > size * beam:
                    yield batch
                    batch, taken = [], 0
                batch.append(i)
                taken += width
        if batch:
            yield batch
