"""The most likely sentence, within a beam (§6.1).

At every step each of a sentence's `beam` hypotheses is continued with every token of the vocabulary, and the best
`beam` of all these continuations stay active. One that ends among the best is put aside. Hypotheses are ranked by
their total log-probability, ended ones by their score (beam_options.py).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor

from .beam_options import BeamOptions
from .ended import EndedHypotheses
from .step import AnyState, Hypothesis, SearchLimits, Step

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
    parent: "PartialHypothesis | None" = None

    def ids(self) -> list[int]:
        """All its tokens without the start token."""
        newest_first: list[int] = []
        row = self
        while row.parent is not None:
            newest_first.append(row.token)
            row = row.parent
        return newest_first[::-1]


def beam_search(
    step: Step[AnyState], state: AnyState, limits: SearchLimits, options: BeamOptions
) -> list[list[Hypothesis]]:
    """For each of B sentences, the `options.nbest` best hypotheses that the beam finds, the best first.

    When the search of a sentence stops, `EndedHypotheses` decides. A beam of 1 is greedy search; one as wide as the
    space of all sentences finds the best of them.
    """
    select_top = find_top_continuations(step)
    device, beam = limits.device, options.beam
    ended = EndedHypotheses(limits, options)
    active = list(range(limits.sentences))  # the sentences still in the batch, and the beam of each
    # All hypotheses of a sentence start alike, so at first only one of them counts.
    first = [PartialHypothesis(0.0, limits.sos_id), *[PartialHypothesis(-math.inf, limits.sos_id)] * (beam - 1)]
    beams = [list(first) for _ in active]
    state = state.reorder(torch.arange(len(active), device=device).repeat_interleave(beam))

    for length in range(1, limits.longest + 1):
        last = torch.tensor([row.token for rows in beams for row in rows], device=device)
        log_probabilities, state = step(last, state)
        # At most `beam` of the best 2 · beam end, so at least `beam` stay active.
        best = select_top([[row.total for row in rows] for rows in beams], log_probabilities, 2 * beam)
        kept, parents = [], []
        for b, (sentence, candidates) in enumerate(zip(active, map(zip, *best), strict=True)):
            rows, beams[b] = beams[b], []
            for rank, (total, parent, token) in enumerate(takewhile(_is_possible, candidates)):
                if token != limits.eos_id and len(beams[b]) < beam:
                    beams[b].append(PartialHypothesis(total, token, rows[parent]))
                    parents.append(b * beam + parent)
                elif token == limits.eos_id and rank < beam:
                    ended.add(sentence, rows[parent].ids(), total, length)
            while len(beams[b]) < beam:  # there were not so many possible continuations
                beams[b].append(PartialHypothesis(-math.inf, limits.eos_id))
                parents.append(b * beam)
            possible = ((row.ids(), row.total) for row in beams[b] if row.total > -math.inf)
            if ended.goes_on(sentence, beams[b][0].total, possible, length):
                kept.append(b)
        if not kept:
            break
        state = state.reorder(torch.tensor(parents, device=device))
        if len(kept) == len(active):
            continue
        if len(kept) > len(active) * 7 / 8:  # moving the others together would take longer than computing all
            for b in set(range(len(active))) - set(kept):
                beams[b] = [PartialHypothesis(-math.inf, limits.eos_id)] * beam  # a total of -∞ is never continued
        else:
            active, beams = [active[b] for b in kept], [beams[b] for b in kept]
            state = state.keep(torch.tensor(kept, device=device))
    return ended.best()


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
