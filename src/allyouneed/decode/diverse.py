"""Different good sentences: diverse beam search (Vijayakumar et al., 2018).

The beam is split into groups. Each group searches like any beam, but a word costs it `diversity`
nats for every hypothesis of an earlier group that said the same word at the same place. A group
depends on earlier ones only, so the groups can search one after another, from one state.
"""

import torch
from torch import Tensor

from .beam import Penalty, beam_search, best_first, length_penalty
from .rules import with_rules
from .step import AnyState, Hypothesis, Step


def diverse_beam_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    sos_id: int,
    eos_id: int,
    max_lengths: Tensor,
    beam: int,
    alpha: float,
    groups: int,
    diversity: float,
    penalty: Penalty = length_penalty,
    patience: float = 1.0,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """As `beam_search`, the `beam` in `groups` equal parts. Of what all groups found, `nbest` different ones.

    Every group gives its best before any gives its second, so `nbest` = `groups` is one of each.
    A log-probability has what diversity cost taken off.
    """
    said: list[dict[int, Tensor]] = []  # for each group before: place → counts (B, V)
    found_by: list[list[list[Hypothesis]]] = []
    for _ in range(groups):
        now: dict[int, Tensor] = {}

        def differ(
            written: Tensor, sentences: Tensor, log_probabilities: Tensor, now: dict[int, Tensor] = now
        ) -> Tensor:
            place = written.size(1)
            if place:  # the newest word shows only now, one place later
                counts = torch.zeros(len(max_lengths), log_probabilities.size(-1), device=written.device)
                once = torch.ones(len(sentences), device=written.device)
                now[place - 1] = counts.index_put_((sentences, written[:, -1]), once, accumulate=True)
            for before in said:
                if place in before:
                    log_probabilities = log_probabilities - diversity * before[place][sentences]
            return log_probabilities

        device = max_lengths.device
        found = beam_search(
            *with_rules(step, state, [differ], sentences=len(max_lengths), device=device),
            sos_id=sos_id,
            eos_id=eos_id,
            max_lengths=max_lengths,
            beam=beam // groups,
            alpha=alpha,
            penalty=penalty,
            patience=patience,
            nbest=min(nbest, beam // groups),
        )
        said.append(now)
        found_by.append(found)
    return [_in_turn([found[b] for found in found_by], nbest) for b in range(len(max_lengths))]


def _in_turn(groups: list[list[Hypothesis]], count: int) -> list[Hypothesis]:
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for rank in range(max(map(len, groups))):
        for hypothesis in best_first([group[rank] for group in groups if rank < len(group)]):
            chosen.setdefault(tuple(hypothesis.ids), hypothesis)
    return list(chosen.values())[:count]
