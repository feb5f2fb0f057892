"""Batches: padding, planning, order."""

import tracemalloc
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from allyouneed.data.batch import SORT_WINDOW, Batch, batches, batches_by_length, epoch_of_batches, pad
from allyouneed.data.pairs import EncodedPairs, Indices, Pairs, Side
from allyouneed.errors import ConfigError


def test_short_rows_are_filled_up() -> None:
    assert pad([[1, 2, 3], [4]], pad_id=9).tolist() == [[1, 2, 3], [4, 9, 9]]


def test_no_rows_are_a_batch_of_none() -> None:
    assert pad([], pad_id=9).shape == (0, 1)


def test_the_decoder_is_given_what_came_before_what_it_should_say() -> None:
    batch = Batch(source=torch.tensor([[1, 2]]), target=torch.tensor([[65, 4, 5, 66]]))
    assert batch.target_in.tolist() == [[65, 4, 5]]
    assert batch.target_out.tolist() == [[4, 5, 66]]


LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=80)


def load_pairs(lengths: list[tuple[int, int]]) -> EncodedPairs:
    """Pair i consists of the id i + 1, over and over."""
    return EncodedPairs(
        Side.from_sentences([[i + 1] * source for i, (source, _) in enumerate(lengths)]),
        Side.from_sentences([[i + 1] * target for i, (_, target) in enumerate(lengths)]),
    )


def some_pairs(count: int = 500) -> EncodedPairs:
    rng = np.random.default_rng(0)
    return load_pairs([(int(a), int(b)) for a, b in rng.integers(2, 40, (count, 2))])


def longest_sides(pairs: EncodedPairs) -> NDArray[np.int32]:
    everyone = np.arange(len(pairs), dtype=np.int32)
    return np.maximum(pairs.source.lengths(everyone), pairs.target.lengths(everyone))


@given(LENGTHS, st.integers(30, 200), st.integers(0, 3))
def test_every_pair_comes_once_an_epoch_and_no_batch_is_over_budget(
    lengths: list[tuple[int, int]], batch_tokens: int, epoch: int
) -> None:
    pairs = load_pairs(lengths)
    plan = list(epoch_of_batches(pairs, batch_tokens=batch_tokens, seed=1, epoch=epoch))
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for chosen in plan:
        assert len(chosen) * max(max(lengths[i]) for i in chosen) <= batch_tokens


def test_little_of_a_batch_is_padding() -> None:
    pairs = some_pairs()
    longest = longest_sides(pairs)
    plan = epoch_of_batches(pairs, batch_tokens=400, seed=1, epoch=0)
    wasted = sum(len(chosen) * longest[chosen].max() - longest[chosen].sum() for chosen in plan)
    assert wasted < 0.05 * longest.sum()


@given(LENGTHS, st.integers(1, 90))
def test_a_corpus_larger_than_a_window_comes_whole_too(lengths: list[tuple[int, int]], window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("allyouneed.data.batch.SORT_WINDOW", window)
        plan = list(epoch_of_batches(load_pairs(lengths), batch_tokens=60, seed=1, epoch=0))
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))


def test_a_window_holds_pairs_from_all_over_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.data.batch.SORT_WINDOW", 100)
    first = np.concatenate(list(epoch_of_batches(some_pairs(), batch_tokens=400, seed=1, epoch=0)))[:100]
    assert 200 < first.mean() < 300
    assert len(set(first // 50)) == 10


def test_planning_an_epoch_takes_few_bytes_a_pair() -> None:
    count = 3_000_000
    side = Side(np.zeros(count * 4, np.uint16), np.arange(0, count * 4 + 1, 4))
    pairs = EncodedPairs(side, side)
    tracemalloc.start()
    next(epoch_of_batches(pairs, batch_tokens=4000, seed=1, epoch=0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * count + 40 * SORT_WINDOW + 40 * 2**20


def test_batches_of_all_lengths_come_in_turn() -> None:
    pairs = some_pairs()
    longest = longest_sides(pairs)
    means = [longest[chosen].mean() for chosen in epoch_of_batches(pairs, batch_tokens=400, seed=1, epoch=0)]
    rises = sum(after > before for before, after in pairwise(means))
    assert 0.3 * len(means) < rises < 0.7 * len(means)


def test_the_order_follows_from_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        plan = epoch_of_batches(some_pairs(), batch_tokens=400, seed=seed, epoch=epoch)
        return [int(i) for chosen in plan for i in chosen]

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


@settings(deadline=None)
@given(st.integers(0, 60))
def test_a_place_in_the_data_is_how_many_batches_came_before(skip: int) -> None:
    pairs = some_pairs(60)

    def feed(skip: int) -> list[list[list[int]]]:
        endless = batches(pairs, batch_tokens=200, seed=1, pad_id=0, skip=skip)
        return [batch.source.tolist() for batch in islice(endless, 70 - skip)]

    assert feed(0)[skip:] == feed(skip)


def test_subword_sampling_goes_on_in_the_next_epoch() -> None:
    def resample(chosen: Indices, epoch: int) -> Pairs:
        side = Side.from_sentences([[i, epoch] for i in chosen.tolist()])
        return Pairs(side, side)

    pairs = replace(load_pairs([(2, 2)] * 3), resample=resample)
    sampled = islice(batches(pairs, batch_tokens=10, seed=1, pad_id=99), 3)
    assert [sorted(batch.source.tolist()) for batch in sampled] == [
        [[i, epoch] for i in range(3)] for epoch in range(3)
    ]


def test_a_batch_is_padded_and_keeps_pairs_together() -> None:
    batch = next(batches(some_pairs(), batch_tokens=100, seed=1, pad_id=0))
    assert isinstance(batch, Batch)
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        assert set(source) - {0} == set(target) - {0} == {source[0]}


def test_validation_sees_every_pair_once() -> None:
    pairs = some_pairs(50)
    seen = [row[0] for batch in batches_by_length(pairs, batch_tokens=200, pad_id=0) for row in batch.source.tolist()]
    assert sorted(seen) == list(range(1, 51))


def test_a_budget_that_does_not_hold_the_longest_sentence_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_tokens .*30 tokens; got 29"):
        next(epoch_of_batches(load_pairs([(3, 30)]), batch_tokens=29, seed=1, epoch=0))


def test_weights_that_leave_an_epoch_no_pair_are_refused() -> None:
    pairs = replace(some_pairs(), weights=((300, 1e-9), (500, 1e-3)))
    with pytest.raises(ConfigError, match=r"data\.corpus .*0\.2 pairs"):
        next(epoch_of_batches(pairs, batch_tokens=400, seed=1, epoch=0))


def test_each_side_is_padded_with_the_id_of_its_own_vocabulary() -> None:
    batch = next(batches(some_pairs(), batch_tokens=100, seed=1, pad_id=0, target_pad_id=7))
    assert (batch.source == 0).any()
    assert (batch.target == 7).any()
    assert not (batch.target == 0).any()
