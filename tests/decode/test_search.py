"""What holds of every search: a cancelled sentence leaves the batch, and changes nothing for the others."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from allyouneed.config import DecodeConfig
from allyouneed.decode import Hypothesis, PhraseConstraint, SearchLimits, Step, minimum_length, search
from allyouneed.decode.ended import best_first
from tables import EOS, Prefixes, Table, limits

CONFIGS = [
    DecodeConfig(beam=1),
    DecodeConfig(beam=3, nbest=2),
    DecodeConfig(beam=4, beam_groups=2, nbest=2),
    DecodeConfig(sample=True, nbest=2),
]
LENGTHS = [9] * 12


def run(
    step: Step[Prefixes], config: DecodeConfig, limits: SearchLimits, *, constrained: bool = False
) -> list[list[Hypothesis]]:
    constraints = [[PhraseConstraint(((2, 3),))]] * limits.sentences if constrained else []
    return search(
        step,
        Table(7, 1).start(limits.sentences),
        config,
        limits,
        rules=[minimum_length(limits.max_lengths, eos_id=EOS)],
        constraints=constraints,
        generators=[torch.Generator().manual_seed(sentence) for sentence in range(limits.sentences)],
    )


def test_of_several_samples_the_best_comes_first() -> None:
    for samples in run(Table(7, 1), DecodeConfig(sample=True, nbest=6), limits(*LENGTHS)):
        assert samples == best_first(samples)


@pytest.mark.parametrize("config", CONFIGS, ids=["greedy", "beam", "groups", "sample"])
@pytest.mark.parametrize("constrained", [False, True])
def test_a_cancelled_sentence_leaves_the_batch_and_changes_no_other(config: DecodeConfig, constrained: bool) -> None:
    cancelled: set[int] = set()
    rows: list[int] = []

    def counting_step(last: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        rows.append(len(set(state.sentences.tolist())))
        if len(rows) == 3:
            cancelled.update({0, 4, 5, 11})
        return Table(7, 1)(last, state)

    expected = run(Table(7, 1), config, limits(*LENGTHS), constrained=constrained)
    cancellable = replace(limits(*LENGTHS), is_cancelled=cancelled.__contains__)
    hypotheses = run(counting_step, config, cancellable, constrained=constrained)
    assert rows[:4] == [12, 12, 12, 8]
    assert hypotheses == [[] if sentence in cancelled else best for sentence, best in enumerate(expected)]


@pytest.mark.parametrize("config", CONFIGS, ids=["greedy", "beam", "groups", "sample"])
def test_a_search_whose_sentences_are_all_cancelled_stops_at_once(config: DecodeConfig) -> None:
    def steps() -> Iterator[None]:
        yield from [None] * (config.nbest * config.beam_groups)  # one step of each sample, or of each group

    allowed = steps()

    def step(last: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        next(allowed)
        return Table(7, 1)(last, state)

    nothing = run(step, config, replace(limits(*LENGTHS), is_cancelled=lambda sentence: True))
    assert nothing == [[]] * len(LENGTHS)
