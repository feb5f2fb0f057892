"""The likeliest sentence, within a beam (§6.1).

At every step each of a sentence's `beam` hypotheses is tried with every next word, and the best
`beam` of all these go on. One that ends among the best is put aside. Long sentences, whose
probability is a product of more factors, are made up for by the length penalty of Wu et al. (2016):
the score of a sentence Y is log P(Y) / ((5 + |Y|) / 6)^α, the end sign counted in |Y|.
"""

from typing import NotRequired, Protocol, TypedDict

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


class Ranking(TypedDict):
    """What `beam_search` is told of how many hypotheses to look at, and which of them are good."""

    beam: int
    alpha: float
    penalty: NotRequired[Penalty]
    patience: NotRequired[float]
    nbest: NotRequired[int]


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

    `max_lengths` (B,) bounds each one's ids, the end sign included. A sentence is done when `beam`
    hypotheses have ended (times `patience`, Kasai et al., 2022), or when none that goes on could
    still beat the `nbest` best that have. Those that reach their bound unfinished count only if too
    few have ended. A beam of 1 is greedy search; one as wide as the space of all sentences finds
    the best of them.
    """
    device, limits = max_lengths.device, max_lengths.tolist()
    ended: list[list[Hypothesis]] = [[] for _ in limits]
    alive = list(range(len(limits)))  # the sentences still in the batch
    # All of a sentence's hypotheses start alike, so at first only one of them counts.
    totals = torch.full((len(alive), beam), -torch.inf, device=device)
    totals[:, 0] = 0.0
    ids = torch.full((len(alive), beam, 1), sos_id, device=device)
    state = state.reorder(torch.arange(len(alive), device=device).repeat_interleave(beam))

    for length in range(1, max(limits) + 1):
        log_probabilities, state = step(ids[:, :, -1].flatten(), state)
        totals, parents, words = _best_continuations(totals, log_probabilities, beam)
        ids = torch.cat((ids.gather(1, parents[:, :, None].expand(-1, -1, length)), words[:, :, None]), 2)
        divisor = penalty(length, alpha=alpha)

        is_end = (words == eos_id) & totals.isfinite()
        for b, k in is_end[:, :beam].nonzero().tolist():
            total = float(totals[b, k])
            ended[alive[b]].append(Hypothesis(ids[b, k, 1:-1].tolist(), total, total / divisor))

        # The best that have not ended go on; a stable sort keeps their order.
        going_on = (words == eos_id).int().argsort(dim=1, stable=True)[:, :beam]
        totals = totals.masked_fill(words == eos_id, -torch.inf).gather(1, going_on)
        ids = ids.gather(1, going_on[:, :, None].expand(-1, -1, length + 1))
        parents = parents.gather(1, going_on)

        kept = []
        for b, (sentence, best) in enumerate(zip(alive, totals[:, 0].tolist(), strict=True)):
            found = ended[sentence]
            if length == limits[sentence]:
                for k in range(min(nbest - len(found), int(totals[b].isfinite().sum()))):
                    total = float(totals[b, k])
                    found.append(Hypothesis(ids[b, k, 1:].tolist(), total, total / divisor, finished=False))
                continue
            # A total only falls as a sentence grows, so this is the best score a longer one could get.
            hope = best / penalty(limits[sentence], alpha=alpha)
            enough = len(found) >= nbest and (len(found) >= beam * patience or _nth_score(found, nbest) >= hope)
            if not enough and hope > -torch.inf:
                kept.append(b)
        if not kept:
            break
        first_of_each = torch.arange(len(alive), device=device)[:, None] * beam
        state = state.reorder((first_of_each + parents).flatten())
        if len(kept) == len(alive):
            continue
        rows = torch.tensor(kept, device=device)
        if len(kept) > len(alive) * 7 / 8:  # moving the others together would cost more than the work for those done
            totals = torch.full_like(totals, -torch.inf).index_copy(0, rows, totals[rows])  # nothing comes of -∞
        else:
            alive = [alive[b] for b in kept]
            totals, ids, state = totals[rows], ids[rows], state.keep(rows)
    return [best_first(found)[:nbest] for found in ended]


def best_first(found: list[Hypothesis]) -> list[Hypothesis]:
    """The finished before the unfinished, each by score."""
    return sorted(found, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))


def _nth_score(found: list[Hypothesis], n: int) -> float:
    return sorted((hypothesis.score for hypothesis in found), reverse=True)[n - 1]


def _best_continuations(totals: Tensor, log_probabilities: Tensor, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best 2 · beam of all continuations: totals, which hypothesis each continues, with which word.

    At most `beam` of them end, so at least `beam` are left to go on. Shapes: totals (B, beam),
    log_probabilities (B · beam, V) → three times (B, 2 · beam).
    """
    count = min(2 * beam, log_probabilities.size(-1))
    gains, words = highest(log_probabilities, count)  # more of one hypothesis cannot be among the best 2 · beam
    continued = (totals.flatten()[:, None] + gains).view(len(totals), -1)  # (B · beam, count) → (B, beam · count)
    best, where = continued.topk(min(2 * beam, continued.size(1)))
    return best, where // count, words.view(len(totals), -1).gather(1, where)


def highest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`scores.topk(count)`: of each row the highest and their places. Shapes: (N, V) → (N, count) twice.

    A long row is folded into 16 short ones first. Only places that are the highest of their column
    can lead to the highest of all, and a maximum over columns is quicker than a search for the best.
    """
    width = scores.size(1) // _FOLDS
    if width < 8 * count:
        best = scores.topk(count)
        return best.values, best.indices
    folded = scores[:, : _FOLDS * width].view(-1, _FOLDS, width)  # (N, V) → (N, 16, V / 16)
    columns = folded.amax(1).topk(count).indices  # (N, count)
    rows = torch.arange(0, _FOLDS * width, width, device=scores.device)
    places = (columns[:, None] + rows[:, None]).flatten(1)  # (N, 16, count) → (N, 16 · count)
    rest = torch.arange(_FOLDS * width, scores.size(1), device=scores.device)
    places = torch.cat((places, rest.expand(len(scores), -1)), 1)
    values, which = scores.gather(1, places).topk(count)
    return values, places.gather(1, which)


_FOLDS = 16
