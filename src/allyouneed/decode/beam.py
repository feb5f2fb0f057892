"""The likeliest sentence, within a beam (§6.1).

At every step each of a sentence's `beam` hypotheses is tried with every next word, and the best
`beam` of all these go on. One that ends among the best is put aside. Long sentences, whose
probability is a product of more factors, are made up for by the length penalty of Wu et al. (2016):
the score of a sentence Y is log P(Y) / ((5 + |Y|) / 6)^α, the end sign counted in |Y|.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from heapq import nlargest
from itertools import takewhile
from typing import NamedTuple, NotRequired, Protocol, TypedDict

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, Step


class Penalty(Protocol):
    """What a log-probability is divided by to make a score; it never falls as `length` (in tokens) grows."""

    def __call__(self, length: int, *, alpha: float) -> float: ...


def length_penalty(length: int, *, alpha: float) -> float:
    """((5 + |Y|) / 6)^α, Wu et al. (2016), equation 14."""
    return float(((5 + length) / 6) ** alpha)


def plain_length_penalty(length: int, *, alpha: float) -> float:
    """|Y|^α; with an α of 1 a score is the mean log-probability of a token."""
    return float(length**alpha)


Best = tuple[list[list[float]], list[list[int]], list[list[int]]]
"""Of each sentence's continuations the best: totals, which hypothesis each continues, with which word."""


TopContinuations = Callable[[list[list[float]], Tensor, int], Best]
"""How the best of all continuations are found.

Totals of hypotheses (B, beam), log-probabilities of their next words (B · beam, V), and a count → three
times (B, count), or as many as there are, the best first.
"""


class BeamOptions(TypedDict):
    """What `beam_search` is told of how many hypotheses to look at, and which of them are good."""

    beam: int
    alpha: float
    penalty: NotRequired[Penalty]
    patience: NotRequired[float]
    nbest: NotRequired[int]


class PartialHypothesis(NamedTuple):
    """A hypothesis that goes on: its newest word, what it was before that word, and its log-probability."""

    total: float
    token: int
    parent: "PartialHypothesis | None" = None

    def ids(self) -> list[int]:
        """All its words, the start sign left out."""
        newest_first: list[int] = []
        row = self
        while row.parent is not None:
            newest_first.append(row.token)
            row = row.parent
        return newest_first[::-1]


def beam_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    sos_id: int,
    eos_id: int,
    max_lengths: Tensor,
    beam: int,
    alpha: float,
    penalty: Penalty = length_penalty,
    patience: float = 1.0,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """For each of B sentences, the `nbest` best that the beam comes across, the best first.

    `max_lengths` (B,) bounds each one's ids, the end sign included. When a sentence is done,
    `is_decided` says. Hypotheses that reach their bound unfinished count only if too few have ended.
    A beam of 1 is greedy search; one as wide as the space of all sentences finds the best of them.
    """
    select_top = find_top_continuations(step)
    device, limits = max_lengths.device, max_lengths.tolist()
    ended: list[list[Hypothesis]] = [[] for _ in limits]
    active = list(range(len(limits)))  # the sentences still in the batch, and the beam of each
    # All of a sentence's hypotheses start alike, so at first only one of them counts.
    beams = [[PartialHypothesis(0.0, sos_id), *[PartialHypothesis(-math.inf, sos_id)] * (beam - 1)] for _ in limits]
    state = state.reorder(torch.arange(len(active), device=device).repeat_interleave(beam))

    for length in range(1, max(limits) + 1):
        last = torch.tensor([row.token for rows in beams for row in rows], device=device)
        log_probabilities, state = step(last, state)
        # At most `beam` of the best 2 · beam end, so at least `beam` are left to go on.
        best = select_top([[row.total for row in rows] for rows in beams], log_probabilities, 2 * beam)
        divisor = penalty(length, alpha=alpha)
        kept, parents = [], []
        for b, (sentence, candidates) in enumerate(zip(active, map(zip, *best), strict=True)):
            rows, beams[b], ended_here = beams[b], [], ended[sentence]
            for rank, (total, parent, word) in enumerate(takewhile(_is_possible, candidates)):
                if word != eos_id and len(beams[b]) < beam:
                    beams[b].append(PartialHypothesis(total, word, rows[parent]))
                    parents.append(b * beam + parent)
                elif word == eos_id and rank < beam:
                    ended_here.append(Hypothesis(rows[parent].ids(), total, total / divisor))
            while len(beams[b]) < beam:  # there were not so many possible continuations
                beams[b].append(PartialHypothesis(-math.inf, eos_id))
                parents.append(b * beam)
            if length == limits[sentence]:
                cut = [row for row in beams[b] if row.total > -math.inf][: max(0, nbest - len(ended_here))]
                ended_here += [Hypothesis(row.ids(), row.total, row.total / divisor, finished=False) for row in cut]
                continue
            best_alive = beams[b][0].total
            if best_alive > -math.inf and not is_decided(
                ended_here,
                best_alive,
                length=length,
                limit=limits[sentence],
                nbest=nbest,
                wait_for=beam * patience,
                divisor=partial(penalty, alpha=alpha),
            ):
                kept.append(b)
        if not kept:
            break
        state = state.reorder(torch.tensor(parents, device=device))
        if len(kept) == len(active):
            continue
        if len(kept) > len(active) * 7 / 8:  # moving the others together would cost more than the work for those done
            for b in set(range(len(active))) - set(kept):
                beams[b] = [PartialHypothesis(-math.inf, eos_id)] * beam  # nothing comes of -∞
        else:
            active, beams = [active[b] for b in kept], [beams[b] for b in kept]
            state = state.keep(torch.tensor(kept, device=device))
    return [best_first(hypotheses)[:nbest] for hypotheses in ended]


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """The finished before the unfinished, each by score."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))


def _is_possible(continuation: tuple[float, int, int]) -> bool:
    return continuation[0] > -math.inf


def is_decided(
    ended: list[Hypothesis],
    best_alive: float,
    *,
    length: int,
    limit: int,
    nbest: int,
    wait_for: float,
    divisor: Callable[[int], float],
) -> bool:
    """Whether a sentence's search may stop: no active hypothesis is likely to get among its `nbest` best.

    `best_alive` is the highest total, in nats, of the active hypotheses, all of `length` ids. A total
    only falls, so its best possible score is that of ending at the bound `limit`. Once `wait_for`
    hypotheses have ended (beam · patience, Kasai et al., 2022), that of ending at the next step is
    enough. Counting alone would keep a bad one that ended early, however good those still active are.
    """
    if len(ended) < nbest:
        return False
    last = length + 1 if len(ended) >= wait_for else limit
    return nlargest(nbest, (hypothesis.score for hypothesis in ended))[-1] >= best_alive / divisor(last)


def find_top_continuations(step: Step[AnyState]) -> TopContinuations:
    """The step's own `top_continuations` if it has one, else the function below."""
    return getattr(step, "top_continuations", top_continuations)


def top_continuations(totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
    """`Continuations` for any device.

    Every word of a long vocabulary is looked at once: each hypothesis's row is folded into 16 short
    ones, and only columns whose highest number is among the best can hold the best of all.
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
        places = torch.cat(((first[:, :, None] + fold).flatten(1), rest.expand(sentences, -1)), 1)  # of beam · V
        gains = log_probabilities.view(sentences, -1).gather(1, places)  # (B · beam, V) → (B, beam · V) → (B, …)
        best, which = (gains + before.gather(1, places // vocabulary)).topk(count)
        where = places.gather(1, which)
    return best.tolist(), (where // vocabulary).tolist(), (where % vocabulary).tolist()


@lru_cache(8)
def _unfolding(beam: int, vocabulary: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the words of a column stand, from its first on; and the places of the words that no column holds."""
    places = torch.arange(beam * vocabulary, device=device).view(beam, vocabulary)
    return places[0, : _FOLDS * width : width], places[:, _FOLDS * width :].flatten()


_FOLDS = 16
