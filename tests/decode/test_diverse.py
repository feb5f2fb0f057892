import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.decode import BeamOptions, beam_search, diverse_beam_search
from tables import Table, limits, make_step


def first_words(diversity: float) -> int:
    different = 0
    for seed in range(20):
        table = Table(vocabulary=9, seed=seed)
        (result,) = diverse_beam_search(
            table,
            table.start(1),
            limits(6),
            BeamOptions(beam=3, alpha=0.6, nbest=3),
            groups=3,
            diversity=diversity,
        )
        assert len({tuple(hypothesis.ids) for hypothesis in result}) == len(result)
        different += len({tuple(hypothesis.ids[:1]) for hypothesis in result})
    return different


def test_more_diversity_makes_more_different_sentences() -> None:
    assert first_words(0.0) < first_words(1.0) < first_words(10.0)


def test_groups_without_diversity_find_the_same() -> None:
    table = Table(7, 1)
    groups = diverse_beam_search(
        table, table.start(2), limits(6, 6), BeamOptions(beam=6, alpha=0.6, nbest=6), groups=3, diversity=0.0
    )
    assert groups == beam_search(table, table.start(2), limits(6, 6), BeamOptions(beam=2, alpha=0.6, nbest=2))


def test_a_token_costs_more_with_every_group_that_has_it() -> None:
    """Token a is twice as likely as b: with half a nat a group, the second group takes it, the third does not."""
    a, b, c = 2, 3, 4
    step = make_step({(): {a: 0.6, b: 0.3, c: 0.1}}, 5)
    (best,) = diverse_beam_search(
        step, Table(5, 0).start(1), limits(4), BeamOptions(beam=3, alpha=0.0, nbest=3), groups=3, diversity=0.5
    )
    assert [hypothesis.ids for hypothesis in best] == [[a], [b]]


@given(st.integers(0, 10_000), st.lists(st.integers(1, 7), min_size=9, max_size=12), st.integers(3, 9))
@settings(deadline=None, max_examples=15)
def test_many_together_are_as_one_by_one(seed: int, lengths: list[int], vocabulary: int) -> None:
    """Of nine or more, one that is done stays in the batch for a while: it must no longer count."""
    table = Table(vocabulary=vocabulary, seed=seed)

    def search(sentences: list[int]) -> list[list[list[int]]]:
        result = diverse_beam_search(
            table,
            table.start(len(lengths)).keep(torch.tensor(sentences)),
            limits(*(lengths[sentence] for sentence in sentences)),
            BeamOptions(beam=6, alpha=0.6, nbest=3),
            groups=3,
            diversity=2.0,
        )
        return [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in result]

    together = search(list(range(len(lengths))))
    assert together == [alone for sentence in range(len(lengths)) for alone in search([sentence])]
