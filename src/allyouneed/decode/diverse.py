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

_Tokens = tuple[Tensor, Tensor]  # sentences, and a word of each, (N,) both


class _BeamSearchOptions(SearchLimits, BeamOptions):
    """What `beam_search` takes."""


def diverse_beam_search(
    step: Step[AnyState],
    state: AnyState,
    *,
    groups: int,
    diversity: float,
    **options: Unpack[_BeamSearchOptions],
) -> list[list[Hypothesis]]:
    """As `beam_search`, the `beam` in `groups` equal parts. Of what all groups found, `nbest` different ones.

    Every group gives its best before any gives its second, so `nbest` = `groups` is one of each.
    A log-probability has what diversity cost taken off.
    """
    max_lengths, eos_id, nbest = options["max_lengths"], options["eos_id"], options.get("nbest", 1)
    group_beam = options["beam"] // groups
    group_options: _BeamSearchOptions = {**options, "beam": group_beam, "nbest": min(nbest, group_beam)}
    chosen_tokens: list[dict[int, _Tokens]] = []  # for each group before: place → what it said there
    hypotheses_by_group: list[list[list[Hypothesis]]] = []
    for _ in range(groups):
        group_tokens: dict[int, _Tokens] = {}

        def differ(
            written: Tensor, sentences: Tensor, log_probabilities: Tensor, now: dict[int, _Tokens] = group_tokens
        ) -> Tensor:
            position = written.size(1)
            if position:  # the newest word shows only now, one place later
                goes_on = written[:, -1] != eos_id  # what stands for a hypothesis that does not, says the end sign
                now[position - 1] = sentences[goes_on], written[goes_on, -1]
            cost = log_probabilities.new_zeros(len(max_lengths), log_probabilities.size(-1))
            for words in (before[position] for before in chosen_tokens if position in before):
                cost.index_put_(words, cost.new_tensor(diversity), accumulate=True)
            return log_probabilities - cost[sentences]

        ruled, start = with_rules(step, state, [differ], of=max_lengths)
        group_hypotheses = beam_search(ruled, start, **group_options)
        chosen_tokens.append(group_tokens)
        hypotheses_by_group.append(group_hypotheses)
    return [_in_turn([group[b] for group in hypotheses_by_group], nbest) for b in range(len(max_lengths))]


def _in_turn(groups: list[list[Hypothesis]], count: int) -> list[Hypothesis]:
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for rank in range(max(map(len, groups))):
        for hypothesis in best_first([group[rank] for group in groups if rank < len(group)]):
            chosen.setdefault(tuple(hypothesis.ids), hypothesis)
    return list(chosen.values())[:count]
