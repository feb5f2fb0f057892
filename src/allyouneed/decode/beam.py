"""The most likely sentence, within a beam (§6.1).

At every step each of a sentence's `beam` hypotheses is continued with every token of the vocabulary, and the best
`beam` of all these continuations stay active. One that ends among the best is put aside. Hypotheses are ranked by
their total log-probability, ended ones by their score (beam_options.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from ..lazy import Tensor, torch
from .beam_options import BeamOptions
from .ended import EndedHypotheses, ended_hypotheses
from .step import (
    AnyState,
    Hypothesis,
    SearchLimits,
    Step,
)

Best = tuple[list[list[float]], list[list[int]], list[list[int]]]
"""The best continuations of each sentence: their totals, the hypotheses they continue, and their new tokens."""


TopContinuations = Callable[[list[list[float]], Tensor, int], Best]
"""A function that finds the best of all continuations.

Totals of hypotheses (B, beam), log-probabilities of their next tokens (B · beam, V), and a count → three
times (B, count), or as many as there are, the best first.
"""


class PartialHypothesis(NamedTuple):
    """An active hypothesis: its total log-probability, its newest token, and what it was before that token."""

    total: float
    token: int
    parent: PartialHypothesis | None = None

    def ids(self) -> list[int]:
        """All its tokens without the start token."""
        newest_first: list[int] = []
        row = self
        while row.parent is not None:
            newest_first.append(row.token)
            row = row.parent
        return newest_first[::-1]


class SentenceBeam:
    """The beam of one sentence of a batch: `hypotheses` are active, those that ended are put aside."""

    def __init__(self, ended: EndedHypotheses, limits: SearchLimits, beam: int) -> None:
        self.goes_on, self.length, self.best = True, 0, ended.best
        self._ended, self._eos_id, self._beam = ended, limits.eos_id, beam
        # All hypotheses of a sentence start alike, so at first only one of them counts.
        others = [PartialHypothesis(-math.inf, limits.sos_id)] * (beam - 1)
        self.hypotheses = [PartialHypothesis(0.0, limits.sos_id), *others]

    def advance(self, candidates: Iterable[tuple[float, int, int]]) -> list[int]:
        """Continue with the best of the `candidates`. Returns for each hypothesis which of those before it continues.

        A candidate is a total, a hypothesis and its next token; the best come first.
        """
        self.length += 1
        if not self.goes_on:
            return [0] * self._beam
        before, after, parents = self.hypotheses, list[PartialHypothesis](), list[int]()
        for rank, (total, parent, token) in enumerate(takewhile(_is_possible, candidates)):
            if token != self._eos_id and len(after) < self._beam:
                after.append(PartialHypothesis(total, token, before[parent]))
                parents.append(parent)
            elif token == self._eos_id and rank < self._beam:
                self._ended.add(before[parent].ids(), total, self.length)
        possible = ((one.ids(), one.total) for one in after)
        self.goes_on = self._ended.goes_on(after[0].total if after else -math.inf, possible, self.length)
        if not self.goes_on:
            after, parents = [], []  # until it leaves the batch nothing is continued
        missing = self._beam - len(after)  # there were not so many possible continuations
        self.hypotheses = after + [PartialHypothesis(-math.inf, self._eos_id)] * missing
        return parents + [0] * missing


def beam_search(
    step: Step[AnyState], state: AnyState, limits: SearchLimits, options: BeamOptions
) -> list[list[Hypothesis]]:
    """For each of B sentences, the `options.nbest` best hypotheses that the beam finds, the best first.

    When the search of a sentence stops, `EndedHypotheses` decides. A beam of 1 is greedy search; one as wide as the
    space of all sentences finds the best of them.
    """
    select_top = find_top_continuations(step)
    beam = options.beam
    beams = [SentenceBeam(ended, limits, beam) for ended in ended_hypotheses(limits, options)]
    rows = beams  # those that are still in the batch
    state = state.reorder(limits.ids([b for b in range(len(rows)) for _ in range(beam)]))

    while True:
        last = limits.ids([one.token for row in rows for one in row.hypotheses])
        log_probabilities, state = step(last, state)
        # At most `beam` of the best 2 · beam end, so at least `beam` stay active.
        best = select_top([[one.total for one in row.hypotheses] for row in rows], log_probabilities, 2 * beam)
        parents = [
            b * beam + parent
            for b, (row, candidates) in enumerate(zip(rows, map(zip, *best), strict=True))
            for parent in row.advance(candidates)
        ]
        kept = [b for b, row in enumerate(rows) if row.goes_on]
        if not kept:
            return [one.best() for one in beams]
        state = state.reorder(limits.ids(parents))
        # As long as few have ended, moving the others together would take longer than computing all.
        if len(kept) <= len(rows) * 7 / 8:
            rows = [rows[b] for b in kept]
            state = state.keep(limits.ids(kept))


def _is_possible(continuation: tuple[float, int, int]) -> bool:
    return continuation[0] > -math.inf


def find_top_continuations(step: Step[AnyState]) -> TopContinuations:
    """The step's own `top_continuations` if it has one, else the function below."""
    return getattr(step, "top_continuations", top_continuations)


def top_continuations(totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
    """The `TopContinuations` for any device.

    Each number of a long vocabulary is read once: the row of each hypothesis is folded into 16 short ones, and only
    columns whose highest number is among the best can hold the best of all.
    """
    before = log_probabilities.new_tensor(totals)  # (B, beam)
    sentences, vocabulary = len(totals), log_probabilities.size(1)
    width = vocabulary // _FOLDS
    if width < 8 * count:
        continued = (before[:, :, None] + log_probabilities.view(*before.shape, -1)).flatten(1)
        best, where = continued.topk(min(count, continued.size(1)))
    else:
        folded = log_probabilities[:, : _FOLDS * width].view(*before.shape, _FOLDS, width).amax(2)
        columns = (before[:, :, None] + folded).flatten(1).topk(count).indices  # (B, count), of beam · V / 16
        first = columns // width * vocabulary + columns % width
        fold, rest = _unfolding(before.size(1), vocabulary, width, before.device)
        indices = torch.cat(((first[:, :, None] + fold).flatten(1), rest.expand(sentences, -1)), 1)  # of beam · V
        gains = log_probabilities.view(sentences, -1).gather(1, indices)  # (B · beam, V) → (B, beam · V) → (B, …)
        best, which = (gains + before.gather(1, indices // vocabulary)).topk(count)
        where = indices.gather(1, which)
    return best.tolist(), (where // vocabulary).tolist(), (where % vocabulary).tolist()


@lru_cache(8)
def _unfolding(beam: int, vocabulary: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The indices of the tokens of a column, relative to its first; and the indices of tokens that are in no column."""
    indices = torch.arange(beam * vocabulary, device=device).view(beam, vocabulary)
    return indices[0, : _FOLDS * width : width], indices[:, _FOLDS * width :].flatten()


_FOLDS = 16
