"""Rules, held to over random tables: each does what it says, whatever the search."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import DecodeConfig
from allyouneed.decode import (
    Hypothesis,
    Order,
    Restriction,
    Rule,
    at_most,
    forced_prefix,
    in_order,
    minimum_length,
    no_repeated_ngram,
    repetition_penalty,
    search,
)
from tables import EOS, SOS, Table, TableStep, limits, step_by_hand

SEARCHES = st.sampled_from([DecodeConfig(beam=1), DecodeConfig(beam=3), DecodeConfig(sample=True)])
SEEDS = st.integers(0, 10_000)


def run_search(config: DecodeConfig, seed: int, lengths: Sequence[int], rules: list[Rule]) -> list[Hypothesis]:
    lists = search(
        Table(vocabulary=7, seed=seed).start(*range(len(lengths))),
        config,
        limits(*lengths),
        rules=rules,
        generators=[Random(seed + sentence) for sentence in range(len(lengths))],
    )
    return [best for best, *_ in lists]


@given(SEARCHES, SEEDS, st.lists(st.integers(0, 6), min_size=1, max_size=3))
@settings(deadline=None, max_examples=25)
def test_no_sentence_is_shorter_than_it_may(config: DecodeConfig, seed: int, shortest: list[int]) -> None:
    rule = minimum_length(shortest, eos_id=EOS)
    for least, best in zip(shortest, run_search(config, seed, [7] * len(shortest), [rule]), strict=True):
        assert len(best.ids) + 1 >= least


@given(SEARCHES, SEEDS, st.lists(st.integers(1, 6), min_size=1, max_size=3))
@settings(deadline=None, max_examples=25)
def test_a_sentence_that_gets_as_long_as_it_may_ends_there(config: DecodeConfig, seed: int, longest: list[int]) -> None:
    for hypothesis, length in zip(
        run_search(replace(config, forced_eos=True), seed, longest, []), longest, strict=True
    ):
        assert hypothesis.finished
        assert len(hypothesis.ids) < length


@pytest.mark.parametrize("config", [DecodeConfig(beam=1), DecodeConfig(beam=3, alpha=0.0)])
def test_a_forced_end_costs_nothing(config: DecodeConfig) -> None:
    after = {(2,) * length: {2: 0.9, EOS: 0.1} for length in range(4)}
    ((best,),) = search(step_by_hand(after, 3), replace(config, forced_eos=True), limits(3))
    assert (best.ids, best.finished) == ([2, 2], True)
    assert best.log_probability == pytest.approx(2 * math.log(0.9))


@given(SEARCHES, SEEDS, st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_no_run_of_n_stands_twice(config: DecodeConfig, seed: int, n: int) -> None:
    rules = [minimum_length([5, 5], eos_id=EOS), no_repeated_ngram(n)]
    for best in run_search(config, seed, [5 if n == 1 else 9] * 2, rules):
        runs = [tuple(best.ids[i : i + n]) for i in range(len(best.ids) - n + 1)]
        assert len(runs) == len(set(runs))


@given(SEARCHES, SEEDS, st.lists(st.lists(st.integers(2, 6), max_size=4), min_size=1, max_size=3))
@settings(deadline=None, max_examples=25)
def test_every_sentence_begins_as_forced(config: DecodeConfig, seed: int, prefixes: list[list[int]]) -> None:
    for prefix, best in zip(
        prefixes, run_search(config, seed, [8] * len(prefixes), [forced_prefix(prefixes)]), strict=True
    ):
        assert best.ids[: len(prefix)] == prefix


def test_a_word_said_before_is_less_likely() -> None:
    restriction = repetition_penalty(1.5)(0, [2, 0, 2])
    assert restriction == Restriction(penalized={0, 2}, penalty=1.5)
    step = TableStep(lambda *_: [-1.0, -2.0, -3.0], [0])
    step([0], [SOS])
    assert restriction is not None
    step.restrict(0, restriction)
    assert step.rows == [[-1.5, -2.0, -4.5]]


def test_a_rule_that_leaves_nothing_to_say_is_lifted() -> None:
    (best,) = run_search(DecodeConfig(beam=1), 3, [9], [minimum_length([10], eos_id=EOS), no_repeated_ngram(1)])
    assert len(best.ids) == 9


MINIMUM = minimum_length([3], eos_id=EOS)
LIMIT = at_most([[({2: 1, 3: 2}, 3)]])
ORDER = in_order([[[[(2, 3)], [(3,)], [(5,)]]]])


@pytest.mark.parametrize(
    ("rule", "written", "banned"),
    [
        (MINIMUM, [2], {EOS}),
        (MINIMUM, [2, 3], set()),
        (LIMIT, [2], set()),
        (LIMIT, [2, 4, 2], {3}),
        (LIMIT, [3, 2], {2, 3}),
        (ORDER, [], {3, 5}),
        (ORDER, [2], {5}),  # 3 completes the first phrase, though it also is the second
        (ORDER, [2, 3], {5}),
        (ORDER, [2, 3, 3], set()),
    ],
)
def test_a_rule_bans_what_it_must_and_nothing_else(rule: Rule, written: list[int], banned: set[int]) -> None:
    restriction = rule(0, written)
    assert set(restriction.banned if restriction else ()) == banned


@given(SEARCHES, SEEDS, st.sets(st.integers(2, 6), min_size=1, max_size=2), st.integers(0, 4))
@settings(deadline=None, max_examples=25)
def test_what_is_limited_does_not_exceed_its_limit(
    config: DecodeConfig, seed: int, words: set[int], limit: int
) -> None:
    weights = dict(zip(words, (1, 2), strict=False))
    rules = [minimum_length([6, 6], eos_id=EOS), at_most([[(weights, limit)], []])]
    limited, _ = run_search(config, seed, [7, 7], rules)
    assert sum(weights.get(i, 0) for i in limited.ids) <= limit


@given(SEARCHES, SEEDS)
@settings(deadline=None, max_examples=25)
def test_what_has_an_order_is_not_said_before_its_turn(config: DecodeConfig, seed: int) -> None:
    """2 3 (or 4 3) before 5, and 5 before 2 6, which begins like the first."""
    order: Order = [[(2, 3), (4, 3)], [(5,)], [(2, 6)]]
    rules = [minimum_length([8], eos_id=EOS), in_order([[order]])]
    (best,) = run_search(config, seed, [9], rules)
    digits = "".join(map(str, best.ids))
    first = min((digits.find(text) for text in ("23", "43") if text in digits), default=len(digits))
    assert digits.find("5") == -1 or digits.find("5") > first
    assert digits.find("26") == -1 or -1 < digits.find("5") < digits.find("26")
