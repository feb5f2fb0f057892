"""Sampling over tables of numbers: each word as often as it is likely, whatever is looked at first."""

import math
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.decode import SampledStep, greedy_search, sampling_probabilities
from tables import SOS, Table, TableStep, limits

LIKELY = [math.log(probability) for probability in (0.5, 0.3, 0.15, 0.05)]


def drawn(log_probabilities: list[float], count: int, **options: Any) -> Counter[int]:
    step, rng = TableStep(lambda *_: log_probabilities, range(count)), Random(1)
    step(range(count), [SOS] * count)
    chosen = SampledStep(step, [rng] * count, **options).best([0.0] * count, 1)
    for n, ((gain, hypothesis, token),) in enumerate(chosen):
        assert (gain, hypothesis) == (log_probabilities[token], n)
    return Counter(token for ((_, _, token),) in chosen)


def test_the_same_seed_draws_the_same() -> None:
    def sentences(seed: int) -> list[list[int]]:
        step = SampledStep(Table(9, 4).start(*range(6)), [Random(seed + sentence) for sentence in range(6)])
        return [one.ids for one in greedy_search(step, limits(*[8] * 6))]

    assert sentences(1) == sentences(1)
    assert sentences(1) != sentences(2)


def test_a_sample_does_not_depend_on_the_other_sentences() -> None:
    table = Table(9, 4)
    together = greedy_search(SampledStep(table.start(0, 1, 2), [Random(i) for i in range(3)]), limits(8, 2, 8))
    (alone,) = greedy_search(SampledStep(table.start(2), [Random(2)]), limits(8))
    assert together[2].ids == alone.ids


def test_top_k_and_top_p_leave_out_the_unlikely() -> None:
    def possible(top_k: int = 0, top_p: float = 1.0) -> list[bool]:
        return [p > 0 for p in sampling_probabilities(LIKELY, temperature=1.0, top_k=top_k, top_p=top_p)]

    assert possible(top_k=2) == [True, True, False, False]
    assert possible(top_p=0.79) == [True, True, False, False]
    assert possible(top_p=0.81) == [True, True, True, False]
    assert possible(top_p=0.1) == [True, False, False, False]
    assert possible() == [True] * 4


def test_a_low_temperature_is_careful() -> None:
    assert sampling_probabilities(LIKELY, temperature=0.1, top_k=0, top_p=1.0)[0] > 0.98
    assert sampling_probabilities(LIKELY, temperature=1.0, top_k=0, top_p=1.0) == pytest.approx([0.5, 0.3, 0.15, 0.05])


def test_what_the_model_gives_no_chance_is_never_drawn() -> None:
    assert set(drawn([-math.inf, -0.7, -math.inf, -0.7, -math.inf], 2_000)) == {1, 3}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.6), (3, 0.9)])
def test_words_are_drawn_as_often_as_they_are_likely(temperature: float, top_k: int, top_p: float) -> None:
    counts = drawn(LIKELY, 4_000, temperature=temperature, top_k=top_k, top_p=top_p)
    expected = sampling_probabilities(LIKELY, temperature=temperature, top_k=top_k, top_p=top_p)
    assert [counts[token] / 4_000 for token in range(4)] == pytest.approx(expected, abs=0.03)


@given(
    st.integers(0, 10_000),
    st.sampled_from([0.3, 1.0, 1.7]),
    st.sampled_from([0.3, 0.95, 1.0]),
    st.sampled_from([0.1, 1.0, 4.0]),
)
@settings(deadline=None, max_examples=40)
def test_looking_at_the_likely_ones_first_draws_the_same(
    seed: int, temperature: float, top_p: float, evenness: float
) -> None:
    """Of 1,000 words the first 64 are looked at; without a bound on the others, all of them."""
    row = list(Table(1_000, seed, evenness).after(0, ()))
    options = {"temperature": temperature, "top_p": top_p}
    assert drawn(row, 3, **options) == drawn(row, 3, at_most_one=False, **options)
