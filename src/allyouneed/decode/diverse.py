"""Different good sentences: diverse beam search (Vijayakumar et al., 2018).

The beam is split into groups. Each group searches like any beam, but a word costs it `diversity`
nats for every hypothesis of an earlier group that said the same word at the same place. A group
depends on earlier ones only, so the groups can search one after another, from one state.
"""

from typing import Unpack

from torch import Tensor

from .beam import BeamOptions, beam_search, best_first
from .rules import with_rules
from .step import AnyState, Hypothesis, SearchLimits, Step

_Words = tuple[Tensor, Tensor]  # sentences, and a word of each, (N,) both


class _Wishes(SearchLimits, BeamOptions):
    """What `beam_search` takes."""


def diverse_beam_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    groups: int,
    diversity: float,
    **wishes: Unpack[_Wishes],
) -> list[list[Hypothesis]]:
    """As `beam_search`, the `beam` in `groups` equal parts. Of what all groups found, `nbest` different ones.

    Every group gives its best before any gives its second, so `nbest` = `groups` is one of each.
    A log-probability has what diversity cost taken off.
    """
    max_lengths, eos_id, nbest = wishes["max_lengths"], wishes["eos_id"], wishes.get("nbest", 1)
    each = wishes["beam"] // groups
    of_a_group: _Wishes = {**wishes, "beam": each, "nbest": min(nbest, each)}
    said: list[dict[int, _Words]] = []  # for each group before: place → what it said there
    found_by: list[list[list[Hypothesis]]] = []
    for _ in range(groups):
        now: dict[int, _Words] = {}

        def differ(
            written: Tensor, sentences: Tensor, log_probabilities: Tensor, now: dict[int, _Words] = now
        ) -> Tensor:
            place = written.size(1)
            if place:  # the newest word shows only now, one place later
                goes_on = written[:, -1] != eos_id  # what stands for a hypothesis that does not, says the end sign
                now[place - 1] = sentences[goes_on], written[goes_on, -1]
            cost = log_probabilities.new_zeros(len(max_lengths), log_probabilities.size(-1))
            for words in (before[place] for before in said if place in before):
                cost.index_put_(words, cost.new_tensor(diversity), accumulate=True)
            return log_probabilities - cost[sentences]

        ruled, start = with_rules(step, state, [differ], of=max_lengths)
        found = beam_search(ruled, start, **of_a_group)
        said.append(now)
        found_by.append(found)
    return [_in_turn([found[b] for found in found_by], nbest) for b in range(len(max_lengths))]


def _in_turn(groups: list[list[Hypothesis]], count: int) -> list[Hypothesis]:
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for rank in range(max(map(len, groups))):
        for hypothesis in best_first([group[rank] for group in groups if rank < len(group)]):
            chosen.setdefault(tuple(hypothesis.ids), hypothesis)
    return list(chosen.values())[:count]
