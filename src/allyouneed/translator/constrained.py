"""Beam search with lexical constraints: dynamic beam allocation (Post and Vilar, 2018).

Every hypothesis must contain the phrases of its sentence. Hypotheses that have written the same number of phrase tokens
form a bank, and compete only within that bank. Each hypothesis is extended by its most likely tokens and also by every
token that continues a phrase, even an unlikely one. The banks take turns filling the beam, starting with the bank that
has written the most. This keeps the most advanced hypothesis in the beam, so the search completes all phrases within as
many steps as they have tokens. A hypothesis may end only once it has all phrases.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain, count, zip_longest
from typing import NamedTuple

from ..decode import BeamOptions, Continuation, Hypothesis, SearchLimits, Step, best_first
from .constraint_state import ConstraintState, PhraseConstraint, WordBoundaries

WIDEST = 48  # hypotheses of a sentence; the time of a search grows faster than this number


class Candidate(NamedTuple):
    """A hypothesis: its log-probability, the row that it extends, its tokens and its constraints."""

    total: float
    parent: int
    ids: tuple[int, ...]
    constraint_state: ConstraintState


def constrained_beam_search(
    step: Step,
    limits: SearchLimits,
    options: BeamOptions,
    *,
    constraints: Sequence[Sequence[PhraseConstraint]],
    boundaries: WordBoundaries,
) -> list[list[Hypothesis]]:
    """Search like `beam_search`, but make every hypothesis of sentence b contain all phrases of `constraints[b]`.

    Each phrase widens the beam by `beam` hypotheses, up to `WIDEST`, so that phrases can come early or late. A sentence
    gets no hypothesis if its length limit is too low for its phrases; `max_constrained_length` is always high enough.
    """
    ended: list[list[Hypothesis]] = [[] for _ in limits.max_lengths]
    widths = [beam_width(options.beam, phrases) for phrases in constraints]
    beams = {
        sentence: [Candidate(0.0, sentence, (), ConstraintState.begin(phrases, boundaries, sos_id=limits.sos_id))]
        for sentence, phrases in enumerate(constraints)
    }
    hypotheses = list(beams)
    tokens = [limits.sos_id] * len(beams)
    for length in count(1):
        step(hypotheses, tokens)
        widths_left = [widths[sentence] for sentence in beams]
        candidates = _find_candidates(step, list(beams.values()), widths_left, limits.eos_id, boundaries)
        first = 0
        hypotheses = []
        tokens = []
        for (sentence, rows), further in zip(list(beams.items()), candidates, strict=True):
            found = ended[sentence]
            max_length = limits.max_lengths[sentence]
            is_last = length == max_length
            for n, row in enumerate(rows, start=first):
                if row.constraint_state.is_complete:
                    gain = step.log_probability(n, limits.eos_id)
                    if gain > -math.inf:
                        found.append(options.hypothesis(list(row.ids), row.total + gain, length))
            first += len(rows)
            rows = _share_out(further, widths[sentence])
            complete = [row for row in rows if row.constraint_state.is_complete]
            if is_last:  # cut off here, a hypothesis counts only if too few have ended
                missing = max(0, options.nbest - len(found))
                found += [
                    options.hypothesis(list(row.ids), row.total, length, finished=False) for row in complete[:missing]
                ]
            best_total = max((row.total for row in rows), default=-math.inf)
            is_over = is_last or not rows or limits.is_cancelled(sentence)
            if is_over or options.is_decided(found, best_total, length, max_length):
                del beams[sentence]
                continue
            beams[sentence] = rows
            hypotheses += [row.parent for row in rows]
            tokens += [row.ids[-1] for row in rows]
        if not beams:
            break
    return [best_first(found)[: options.nbest] for found in ended]


def beam_width(beam: int, phrases: Sequence[PhraseConstraint]) -> int:
    """Return the number of active hypotheses for a sentence with these phrases."""
    times = sum(phrase.times for phrase in phrases)
    tokens = sum(phrase.times * max(map(len, phrase.spellings)) for phrase in phrases)
    return min(max(beam * (1 + times), beam + tokens), max(beam, WIDEST))


def _find_candidates(
    step: Step, beams: Sequence[list[Candidate]], widths: Sequence[int], eos_id: int, boundaries: WordBoundaries
) -> list[list[Candidate]]:
    """Find the continuations to consider: the most likely of each sentence and row, and all that advance a phrase."""
    rows = list(chain.from_iterable(beams))
    further = [row.constraint_state.next_tokens() for row in rows]
    ends = frozenset((eos_id,))
    excluded: list[list[Collection[int]]] = []
    for one in further:
        new_word = [boundaries.starts_in_word | ends] if one.any_new_word else []
        word_end = [boundaries.ends_in_word | ends] if one.any_word_end else []
        excluded.append([ends, *new_word, *word_end])
    totals = [row.total for row in rows]
    # More than needed, because each row may have the end token among its best.
    likely = step.best(totals, max(widths) + max(map(len, beams)))
    ranked = _rank_tokens(step, beams, totals, likely, excluded)
    found = []
    first = 0
    for beam, width, best in zip(beams, widths, likely, strict=True):
        of_sentence = range(first, first + len(beam))
        first += len(beam)
        pairs = {(n, token): total for total, n, token in [one for one in best if one.token != eos_id][:width]}
        for n in of_sentence:
            pairs |= {(n, one.token): one.total for one in _first_allowed(ranked[n], excluded[n])}
            pairs |= {(n, token): totals[n] + step.log_probability(n, token) for token in further[n].tokens - ends}
        found.append(
            [
                Candidate(total, n, (*rows[n].ids, token), rows[n].constraint_state.after(token))
                for (n, token), total in sorted(pairs.items())
                if total > -math.inf
            ]
        )
    return found


def _rank_tokens(
    step: Step,
    beams: Sequence[list[Candidate]],
    totals: Sequence[float],
    likely: Sequence[Sequence[Continuation]],
    excluded: Sequence[Sequence[Collection[int]]],
) -> list[list[Continuation]]:
    """Return the best continuations of each row: enough that each set of excluded tokens leaves at least one."""
    ranked: list[list[Continuation]] = [[] for _ in totals]
    for one in chain.from_iterable(likely):
        ranked[one.hypothesis].append(one)
    numbers = count()
    rows_by_sentence = [[next(numbers) for _ in beam] for beam in beams]
    missing = {n for n in range(len(totals)) if len(_first_allowed(ranked[n], excluded[n])) < len(excluded[n])}
    wanted = 8
    while missing:
        # Ask for one row of each sentence at a time, because a single row may hold all the best continuations of a
        # sentence.
        for turn in zip_longest(*([n for n in rows if n in missing] for rows in rows_by_sentence)):
            asked = [total if n in turn else -math.inf for n, total in enumerate(totals)]
            for best in filter(None, step.best(asked, wanted)):
                n = best[0].hypothesis
                ranked[n] = best
                if len(best) < wanted or len(_first_allowed(best, excluded[n])) == len(excluded[n]):
                    missing.discard(n)
            missing -= {n for n in turn if n is not None and not ranked[n]}
        wanted *= 8
    return ranked


def _first_allowed(ranked: Sequence[Continuation], excluded: Sequence[Collection[int]]) -> list[Continuation]:
    """Return, for each set of tokens, the best continuation that is not in the set, if there is one."""
    firsts = (next((one for one in ranked if one.token not in tokens), None) for tokens in excluded)
    return [one for one in firsts if one]


def _share_out(candidates: list[Candidate], width: int) -> list[Candidate]:
    """Fill the beam in rounds. Each round takes the next best candidate of every bank, the most advanced bank first."""
    banks: dict[tuple[int, int, bool], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: -candidate.total):
        banks[candidate.constraint_state.rank].append(candidate)
    in_turn = zip_longest(*(banks[rank] for rank in sorted(banks, reverse=True)))
    return [candidate for candidate in chain.from_iterable(in_turn) if candidate][:width]
