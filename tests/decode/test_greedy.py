"""Greedy search over a table of numbers."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.decode import BeamOptions, beam_search, greedy_search, write_tokens
from tables import EOS, Table, limits, step_by_hand


def test_it_takes_the_most_likely_word_at_every_step() -> None:
    a, b = 2, 3
    after = {(): {a: 0.6, b: 0.4}, (a,): {a: 0.35, b: 0.25, EOS: 0.4}, (b,): {EOS: 1.0}}
    (best,) = greedy_search(step_by_hand(after, 4), limits(5))
    assert (best.ids, best.finished) == ([a], True)
    assert math.isclose(best.log_probability, math.log(0.6 * 0.4))


def test_a_sentence_is_cut_off_at_its_limit_and_others_go_on() -> None:
    table = Table(vocabulary=30, seed=2)  # among so many words the end is seldom the most likely
    short, long = greedy_search(table.start(0, 1), limits(2, 6))
    assert (len(short.ids), short.finished) == (2, False)
    assert long.ids == greedy_search(table.start(1), limits(6))[0].ids


def test_the_tokens_come_one_after_the_other() -> None:
    table = Table(vocabulary=8, seed=4)
    (whole,) = greedy_search(table.start(0), limits(6))
    pieces = write_tokens(table.start(0), limits(6))
    assert next(pieces)[1] == whole.ids[0]
    written = [whole.ids[0], *(token for _, token, _ in pieces)]
    assert written == whole.ids + [EOS] * whole.finished


@given(st.integers(0, 10_000), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(2, 6))
@settings(deadline=None, max_examples=60)
def test_a_beam_of_one_is_greedy(seed: int, lengths: list[int], words: int) -> None:
    table, sentences = Table(vocabulary=2 + words, seed=seed), range(len(lengths))
    greedy = greedy_search(table.start(*sentences), limits(*lengths))
    beamed = beam_search(table.start(*sentences), limits(*lengths), BeamOptions(beam=1, alpha=0.6))
    assert [one.ids for one in greedy] == [best.ids for (best,) in beamed]
    for one, (best,) in zip(greedy, beamed, strict=True):
        assert math.isclose(one.log_probability, best.log_probability, abs_tol=1e-9)
