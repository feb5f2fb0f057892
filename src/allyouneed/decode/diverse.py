"""Different good translations: diverse beam search (Vijayakumar et al., 2018).

The beam is split into groups. Each group is searched like any beam, but a token costs it `diversity` nats for every
hypothesis of an earlier group with the same token at the same position. A group depends on earlier ones only, so the
groups are searched one after another, from one state.
"""

from dataclasses import replace

from ..lazy import Tensor
from .beam import beam_search
from .beam_options import BeamOptions
from .ended import best_first
from .rules import with_rules
from .step import AnyState, Hypothesis, SearchLimits, Step

_Tokens = tuple[Tensor, Tensor]  # sentences, and a token of each, (N,) both


def diverse_beam_search(
    step: Step[AnyState],
    state: AnyState,
    limits: SearchLimits,
    options: BeamOptions,
    *,
    groups: int,
    diversity: float,
) -> list[list[Hypothesis]]:
    """As `beam_search`, the beam in `groups` equal parts. Returns `options.nbest` different hypotheses of all groups.

    The best of every group come before the second best of any, so with `nbest` = `groups` there is one of each. The
    cost of diversity is subtracted from the log-probabilities.
    """
    group_beam = options.beam // groups
    group_options = replace(options, beam=group_beam, nbest=min(options.nbest, group_beam))
    tokens_by_group: list[dict[int, _Tokens]] = []  # for each earlier group: position → its tokens there
    hypotheses_by_group: list[list[list[Hypothesis]]] = []
    for _ in range(groups):
        group_tokens: dict[int, _Tokens] = {}

        def differ(
            written: Tensor, sentences: Tensor, log_probabilities: Tensor, now: dict[int, _Tokens] = group_tokens
        ) -> Tensor:
            position = written.size(1)
            if position:  # a step sees the token before it, so each is recorded one position later
                is_active = written[:, -1] != limits.eos_id  # the rows of hypotheses that ended hold the end token
                now[position - 1] = sentences[is_active], written[is_active, -1]
            cost = log_probabilities.new_zeros(limits.sentences, log_probabilities.size(-1))
            for tokens in (earlier[position] for earlier in tokens_by_group if position in earlier):
                cost.index_put_(tokens, cost.new_tensor(diversity), accumulate=True)
            return log_probabilities - cost[sentences]

        ruled, start = with_rules(step, state, [differ], of=limits.max_lengths)
        group_hypotheses = beam_search(ruled, start, limits, group_options)
        tokens_by_group.append(group_tokens)
        hypotheses_by_group.append(group_hypotheses)
    return [_in_turn([group[b] for group in hypotheses_by_group], options.nbest) for b in range(limits.sentences)]


def _in_turn(groups: list[list[Hypothesis]], count: int) -> list[Hypothesis]:
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for rank in range(max(map(len, groups))):
        for hypothesis in best_first([group[rank] for group in groups if rank < len(group)]):
            chosen.setdefault(tuple(hypothesis.ids), hypothesis)
    return list(chosen.values())[:count]
