"""What holds of every search: a cancelled sentence leaves the batch, and changes nothing for the others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from allyouneed.config import DecodeConfig
from allyouneed.decode import (
    Hypothesis,
    SearchLimits,
    Step,
    beam_options,
    minimum_length,
    restricted,
    search,
    stream_tokens,
)
from allyouneed.translator.constrained import constrained_beam_search
from allyouneed.translator.constraint_state import PhraseConstraint, WordBoundaries
from tables import EOS, Table, TableStep, limits

CONFIGS = [DecodeConfig(beam=1), DecodeConfig(beam=3, nbest=2), DecodeConfig(sample=True)]
NAMES = ["greedy", "beam", "sample"]
LENGTHS = [9] * 12


def run(step: Step, config: DecodeConfig, limits: SearchLimits) -> list[list[Hypothesis]]:
    rules = [minimum_length(limits.max_lengths, eos_id=EOS)]
    return search(step, config, limits, rules=rules, generators=[Random(n) for n in range(limits.sentences)])


def run_constrained(step: Step, config: DecodeConfig, limits: SearchLimits) -> list[list[Hypothesis]]:
    ruled = restricted(step, config, limits, [minimum_length(limits.max_lengths, eos_id=EOS)])
    constraints = [[PhraseConstraint(((2, 3),))]] * limits.sentences
    options = beam_options(config)
    return constrained_beam_search(ruled, limits, options, constraints=constraints, boundaries=WordBoundaries())


class CountingStep(TableStep):
    """Counts the sentences of each step, and calls `after_three` in the third."""

    def __init__(self, table: Table, after_three: Callable[[], None] = lambda: None) -> None:
        super().__init__(table.after, range(len(LENGTHS)))
        self.counts: list[int] = []
        self._after_three = after_three

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        super().__call__(hypotheses, tokens)
        self.counts.append(len(set(self.sentences)))
        if len(self.counts) == 3:
            self._after_three()


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
@pytest.mark.parametrize("search_for", [run, run_constrained], ids=["free", "constrained"])
def test_a_cancelled_sentence_leaves_the_batch_and_changes_no_other(
    config: DecodeConfig, search_for: Callable[[Step, DecodeConfig, SearchLimits], list[list[Hypothesis]]]
) -> None:
    cancelled: set[int] = set()
    expected = search_for(Table(7, 1).start(*range(12)), config, limits(*LENGTHS))
    step = CountingStep(Table(7, 1), lambda: cancelled.update({0, 4, 5, 11}))
    cancellable = replace(limits(*LENGTHS), is_cancelled=cancelled.__contains__)
    hypotheses = search_for(step, config, cancellable)
    assert step.counts[:4] == [12, 12, 12, 8]
    assert [found for b, found in enumerate(hypotheses) if b not in cancelled] == [
        best for b, best in enumerate(expected) if b not in cancelled
    ]
    if search_for is run:
        assert all(hypotheses[b] == [] for b in cancelled)


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_a_search_whose_sentences_are_all_cancelled_stops_at_once(config: DecodeConfig) -> None:
    step = CountingStep(Table(7, 1))
    assert run(step, config, replace(limits(*LENGTHS), is_cancelled=lambda sentence: True)) == [[]] * len(LENGTHS)
    assert len(step.counts) == 1


@pytest.mark.parametrize("config", [DecodeConfig(beam=1), DecodeConfig(sample=True, top_k=3)])
def test_a_stream_is_the_search_of_a_beam_of_one(config: DecodeConfig) -> None:
    ((whole,),) = search(Table(9, 3).start(0), config, limits(7), generators=[Random(5)])
    assert list(stream_tokens(Table(9, 3).start(0), config, limits(7), generators=[Random(5)])) == whole.ids


def test_a_forced_end_costs_a_constrained_sentence_nothing() -> None:
    config, table, lengths = DecodeConfig(beam=3, alpha=0.0, forced_eos=True), Table(7, 2), [2, 3, 4, 9]
    at_limit = 0
    found = run_constrained(table.start(*range(4)), config, limits(*lengths))
    for sentence, (length, hypotheses) in enumerate(zip(lengths, found, strict=True)):
        for one in hypotheses:
            assert one.finished
            at_limit += len(one.ids) + 1 == length
            written = tuple(one.ids) if len(one.ids) + 1 == length else (*one.ids, EOS)
            assert one.log_probability == pytest.approx(table.log_probability(sentence, written))
    assert at_limit
