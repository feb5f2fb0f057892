"""Beam search with lexical constraints: dynamic beam allocation (Post and Vilar, 2018).

Every hypothesis must contain the phrases of its sentence. Hypotheses that have written equally much of their phrases
form a bank, and compete only with each other. Besides the most likely tokens, each hypothesis is continued with every
token that advances a phrase, however unlikely. The beam is shared among the banks in turn, the furthest first, so the
furthest hypothesis always stays active, and after as many steps as the phrases have tokens some hypothesis has all of
them. Only such a hypothesis may end.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from ..lazy import Tensor, torch
from .beam_options import BeamOptions
from .constraint_state import ConstraintState, PhraseConstraint, WordBoundaries
from .ended import ended_hypotheses
from .step import AnyState, Hypothesis, SearchLimits, Step

WIDEST = 48  # hypotheses of a sentence; the time of a search grows faster than their number


class Candidate(NamedTuple):
    """A hypothesis one token longer: its total log-probability, the row it continues, and the new token."""

    total: float
    parent: int
    token: int
    constraint_state: ConstraintState


def constrained_beam_search(
    step: Step[AnyState],
    state: AnyState,
    limits: SearchLimits,
    options: BeamOptions,
    *,
    constraints: Sequence[Sequence[PhraseConstraint]],
    boundaries: WordBoundaries,
) -> list[list[Hypothesis]]:
    """As `beam_search`, but every hypothesis of sentence b contains all phrases of `constraints[b]`.

    The beam is widened by `beam` for every phrase, up to `WIDEST`, so that each can come early or late. A sentence
    whose limit is too low for its phrases gets no hypothesis; `max_constrained_length` tokens are always enough.
    """
    device = limits.device
    ended = ended_hypotheses(limits, options)
    active = list(range(limits.sentences))
    widths = [beam_width(options.beam, phrases) for phrases in constraints]
    width = max(widths)
    beams = [
        [Candidate(0.0, 0, limits.sos_id, ConstraintState.begin(phrases, boundaries, sos_id=limits.sos_id))]
        for phrases in constraints
    ]
    starts_in_word, ends_in_word = (torch.tensor(sorted(ids), dtype=torch.int64, device=device) for ids in boundaries)
    ids = torch.full((len(active), width, 1), limits.sos_id, device=device)
    state = state.reorder(torch.arange(len(active), device=device).repeat_interleave(width))

    for length in range(1, limits.longest + 1):
        log_probabilities, state = step(ids[:, :, -1].flatten(), state)
        by_sentence = log_probabilities.view(len(active), width, -1)
        for b, sentence in enumerate(active):
            rows = beams[sentence]
            totals = torch.tensor([row.total for row in rows], device=device)
            scores = by_sentence[b, : len(rows)] + totals[:, None].to(log_probabilities)  # (rows, V)
            for k, row in enumerate(rows):
                total = float(scores[k, limits.eos_id])
                if row.constraint_state.is_complete and total > -torch.inf:
                    ended[sentence].add(ids[b, k, 1:].tolist(), total, length)
            scores[:, limits.eos_id] = -torch.inf
            candidates = _candidates(scores, rows, widths[sentence], starts_in_word, ends_in_word)
            beams[sentence] = _share_out(candidates, widths[sentence])

        parents = [_padded([row.parent for row in beams[sentence]], width) for sentence in active]
        tokens = [_padded([row.token for row in beams[sentence]], width) for sentence in active]
        parent = torch.tensor(parents, device=device)
        newest = torch.tensor(tokens, device=device)
        ids = torch.cat((ids.gather(1, parent[:, :, None].expand(-1, -1, length)), newest[:, :, None]), 2)
        kept = []
        for b, sentence in enumerate(active):
            rows = beams[sentence]
            complete = (
                (ids[b, k, 1:].tolist(), row.total) for k, row in enumerate(rows) if row.constraint_state.is_complete
            )
            best_total = max((row.total for row in rows), default=-torch.inf)
            if ended[sentence].goes_on(best_total, complete, length):
                kept.append(b)
        if not kept:
            break
        first_rows = torch.arange(len(active), device=device)[:, None] * width
        state = state.reorder((first_rows + parent).flatten())
        if len(kept) < len(active):
            chosen = torch.tensor(kept, device=device)
            active, ids, state = [active[b] for b in kept], ids[chosen], state.keep(chosen)
    return [one.best() for one in ended]


def beam_width(beam: int, phrases: Sequence[PhraseConstraint]) -> int:
    """How many hypotheses of a sentence with these constraints are active at once."""
    times = sum(phrase.times for phrase in phrases)
    tokens = sum(phrase.times * max(map(len, phrase.spellings)) for phrase in phrases)
    return min(max(beam * (1 + times), beam + tokens), max(beam, WIDEST))


def _candidates(
    scores: Tensor, rows: list[Candidate], width: int, starts_in_word: Tensor, ends_in_word: Tensor
) -> list[Candidate]:
    """The most likely of all, of each row, and each token that advances a phrase of a row. Shapes: scores (rows, V)."""
    best = scores.flatten().topk(min(width, scores.numel())).indices
    pairs = {divmod(i, scores.size(1)) for i in best.tolist()}
    pairs |= set(enumerate(scores.argmax(-1).tolist()))
    for k, row in enumerate(rows):
        further = row.constraint_state.next_tokens()
        pairs |= {(k, token) for token in further.tokens}
        if further.any_new_word:
            pairs.add((k, int(scores[k].index_fill(0, starts_in_word, -torch.inf).argmax())))
        if further.any_word_end:
            pairs.add((k, int(scores[k].index_fill(0, ends_in_word, -torch.inf).argmax())))
    after = ((k, token, float(scores[k, token])) for k, token in sorted(pairs))
    return [
        Candidate(total, k, token, rows[k].constraint_state.after(token))
        for k, token, total in after
        if total > -torch.inf
    ]


def _share_out(candidates: list[Candidate], width: int) -> list[Candidate]:
    """The best of each bank, the furthest bank first; then the second best of each; until the beam is full."""
    banks: dict[tuple[int, int, bool], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: -candidate.total):
        banks[candidate.constraint_state.rank].append(candidate)
    in_turn = zip_longest(*(banks[rank] for rank in sorted(banks, reverse=True)))
    return [candidate for candidate in chain.from_iterable(in_turn) if candidate][:width]


def _padded(values: list[int], width: int) -> list[int]:
    return values + [0] * (width - len(values))
