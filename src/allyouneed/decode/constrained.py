"""Beam search whose sentences must say given phrases: dynamic beam allocation (Post and Vilar, 2018).

Hypotheses that have come equally far with their phrases form a bank, and compete with each other
alone. Besides the likeliest words, each may say what leads it further, however unlikely. The beam is
shared out to the banks in turn, the furthest first, so that the furthest always goes on and after as
many steps as the phrases have ids some hypothesis has said them all. Only such a one may end.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from .beam import Penalty, best_first, is_decided, length_penalty
from .constraint_state import ConstraintState, PhraseConstraint, WordBoundaries
from .step import AnyState, Hypothesis, Step


class Candidate(NamedTuple):
    """A hypothesis one word longer."""

    total: float
    parent: int
    word: int
    constraint_state: ConstraintState


def constrained_beam_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    constraints: Sequence[Sequence[PhraseConstraint]],
    boundaries: WordBoundaries,
    sos_id: int,
    eos_id: int,
    max_lengths: Tensor,
    beam: int,
    alpha: float,
    penalty: Penalty = length_penalty,
    patience: float = 1.0,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """As `beam_search`, but every sentence b says all of `demands[b]`.

    The beam is widened by `beam` for every phrase, so that each has room to come early or late. A
    sentence whose bound is too low to say everything gets no hypothesis; `max_constrained_length` ids are
    always enough.
    """
    device, limits = max_lengths.device, max_lengths.tolist()
    ended: list[list[Hypothesis]] = [[] for _ in limits]
    active = list(range(len(limits)))
    widths = [beam_width(beam, phrases) for phrases in constraints]
    width = max(widths)
    beams = [
        [Candidate(0.0, 0, sos_id, ConstraintState.begin(phrases, boundaries, sos_id=sos_id))]
        for phrases in constraints
    ]
    sticky_start, sticky_end = (torch.tensor(sorted(ids), dtype=torch.int64, device=device) for ids in boundaries)
    ids = torch.full((len(active), width, 1), sos_id, device=device)
    state = state.reorder(torch.arange(len(active), device=device).repeat_interleave(width))

    for length in range(1, max(limits) + 1):
        log_probabilities, state = step(ids[:, :, -1].flatten(), state)
        by_sentence = log_probabilities.view(len(active), width, -1)
        kept = []
        for b, sentence in enumerate(active):
            rows = beams[sentence]
            totals = torch.tensor([row.total for row in rows], device=device)
            scores = by_sentence[b, : len(rows)] + totals[:, None].to(log_probabilities)  # (rows, V)
            for k, row in enumerate(rows):
                total = float(scores[k, eos_id])
                if row.constraint_state.is_complete and total > -torch.inf:
                    ended[sentence].append(
                        Hypothesis(ids[b, k, 1:].tolist(), total, total / penalty(length, alpha=alpha))
                    )
            scores[:, eos_id] = -torch.inf
            candidates = _candidates(scores, rows, widths[sentence], sticky_start, sticky_end)
            beams[sentence] = _share_out(candidates, widths[sentence])

        parents = [_filled([row.parent for row in beams[sentence]], width) for sentence in active]
        words = [_filled([row.word for row in beams[sentence]], width) for sentence in active]
        parent = torch.tensor(parents, device=device)
        word = torch.tensor(words, device=device)
        ids = torch.cat((ids.gather(1, parent[:, :, None].expand(-1, -1, length)), word[:, :, None]), 2)
        for b, sentence in enumerate(active):
            rows, ended_here = beams[sentence], ended[sentence]
            if length == limits[sentence]:
                for k, row in enumerate(rows):
                    if len(ended_here) < nbest and row.constraint_state.is_complete:
                        score = row.total / penalty(length, alpha=alpha)
                        ended_here.append(Hypothesis(ids[b, k, 1:].tolist(), row.total, score, finished=False))
                continue
            best_alive = max((row.total for row in rows), default=-torch.inf)
            if rows and not is_decided(
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
        first_of_each = torch.arange(len(active), device=device)[:, None] * width
        state = state.reorder((first_of_each + parent).flatten())
        if len(kept) < len(active):
            chosen = torch.tensor(kept, device=device)
            active, ids, state = [active[b] for b in kept], ids[chosen], state.keep(chosen)
    return [best_first(hypotheses)[:nbest] for hypotheses in ended]


def beam_width(beam: int, phrases: Sequence[PhraseConstraint]) -> int:
    """How many hypotheses a sentence with these demands keeps."""
    times = sum(phrase.times for phrase in phrases)
    tokens = sum(phrase.times * max(map(len, phrase.spellings)) for phrase in phrases)
    return max(beam * (1 + times), beam + tokens)


def _candidates(
    scores: Tensor, rows: list[Candidate], width: int, sticky_start: Tensor, sticky_end: Tensor
) -> list[Candidate]:
    """The likeliest of all, the likeliest of each row, and whatever leads a row further. Shapes: scores (rows, V)."""
    best = scores.flatten().topk(min(width, scores.numel())).indices
    pairs = {divmod(i, scores.size(1)) for i in best.tolist()}
    pairs |= set(enumerate(scores.argmax(-1).tolist()))
    for k, row in enumerate(rows):
        further = row.constraint_state.next_tokens()
        pairs |= {(k, word) for word in further.tokens}
        if further.any_unglued:
            pairs.add((k, int(scores[k].index_fill(0, sticky_start, -torch.inf).argmax())))
        if further.any_loose:
            pairs.add((k, int(scores[k].index_fill(0, sticky_end, -torch.inf).argmax())))
    after = ((k, word, float(scores[k, word])) for k, word in sorted(pairs))
    return [
        Candidate(total, k, word, rows[k].constraint_state.after(word))
        for k, word, total in after
        if total > -torch.inf
    ]


def _share_out(candidates: list[Candidate], width: int) -> list[Candidate]:
    """The best of each bank, the furthest bank first; then the second best of each; until the beam is full."""
    banks: dict[tuple[int, int, bool], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: -candidate.total):
        banks[candidate.constraint_state.rank].append(candidate)
    in_turn = zip_longest(*(banks[rank] for rank in sorted(banks, reverse=True)))
    return [candidate for candidate in chain.from_iterable(in_turn) if candidate][:width]


def _filled(values: list[int], width: int) -> list[int]:
    return values + [0] * (width - len(values))
