import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.translator.repetition import is_repetitive, longest_repetition


@pytest.mark.parametrize(
    ("ids", "period", "length"),
    [([], 0, 0), ([1, 2, 3], 0, 0), ([1, 1], 0, 0), ([5, 1, 1, 1, 1, 6], 1, 4), ([9, 1, 2, 1, 2, 1, 2, 1], 2, 7)],
)
def test_the_longest_loop(ids: list[int], period: int, length: int) -> None:
    assert longest_repetition(ids) == (period, length)


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(4, 9), min_size=1, max_size=6, unique=True))
def test_what_is_said_four_times_is_a_loop_unless_the_source_did_so(head: list[int], again: list[int]) -> None:
    ids = head + again * max(4, 8 // len(again) + 1)
    assert is_repetitive(ids, [1, 2, 3])
    assert not is_repetitive(ids, again * 4 + ids)


def test_four_times_the_same_word_are_a_loop_unless_the_source_repeats_too() -> None:
    def is_word(token: int) -> bool:
        return token > 5

    assert is_repetitive([1, 7, 7, 7, 7], [3, 4], is_word=is_word)
    assert not is_repetitive([1, 7, 7, 7], [3, 4], is_word=is_word)
    assert not is_repetitive([1, 2, 2, 2, 2], [3, 4], is_word=is_word)
    assert not is_repetitive([1, 7, 7, 7, 7], [3, 9, 9, 9], is_word=is_word)


def test_what_the_training_targets_repeat_is_no_loop() -> None:
    assert is_repetitive([1, 2] * 5, [3, 4], normal=9)
    assert not is_repetitive([1, 2] * 5, [3, 4], normal=10)


def test_a_year_of_ones_is_no_loop() -> None:
    assert not is_repetitive([1, 1, 1, 1], [1, 1, 1, 1, 5])
