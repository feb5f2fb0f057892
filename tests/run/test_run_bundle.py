import pytest

from allyouneed.data.pairs import Side
from allyouneed.run.run_bundle import usual_length, usual_repetition


def test_the_longest_repetition_leaves_out_a_thousandth_of_the_targets() -> None:
    once, thrice = [[1, 2, 3]] * 999, [[4, 5, 5, 5, 6]]
    assert usual_repetition(Side.from_sentences(once + thrice * 2)) == 3
    assert usual_repetition(Side.from_sentences(once + thrice)) == 0  # it may be a fault


@pytest.mark.parametrize(("longest", "usual"), [(4, 4), (15, 15), (16, 10)])
def test_the_longest_source_counts_unless_it_is_far_longer_than_the_others(longest: int, usual: int) -> None:
    lengths = [min(longest, 10)] * 999 + [longest]
    assert usual_length(Side.from_sentences([[1] * length for length in lengths])) == usual
