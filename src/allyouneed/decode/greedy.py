"""The likeliest next id, until the end."""

import torch

from .step import AnyState, Hypothesis, Step


def greedy_search(
    step: Step[AnyState], state: AnyState, *, sos_id: int, eos_id: int, max_lengths: torch.Tensor
) -> list[Hypothesis]:
    """For each of B sentences, the sentence that takes the likeliest id at every step.

    `max_lengths` (B,) bounds each one's ids, the end sign included. Sentences that have ended leave
    the batch. The score is the log-probability.
    """
    found: list[list[int]] = [[] for _ in max_lengths]
    totals = [0.0] * len(found)
    alive = torch.arange(len(found), device=max_lengths.device)
    last = torch.full_like(alive, sos_id)
    for length in range(1, int(max_lengths.max()) + 1):
        log_probabilities, state = step(last, state)
        gain, last = log_probabilities.max(-1)
        for sentence, word, bonus in zip(alive.tolist(), last.tolist(), gain.tolist(), strict=True):
            totals[sentence] += bonus
            if word != eos_id:
                found[sentence].append(word)
        going_on = (last != eos_id) & (length < max_lengths[alive])
        if not going_on.all():
            (kept,) = going_on.nonzero(as_tuple=True)
            if len(kept) == 0:
                break
            alive, last, state = alive[kept], last[kept], state.keep(kept)
    return [Hypothesis(ids, total, total) for ids, total in zip(found, totals, strict=True)]
