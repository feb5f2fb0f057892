from allyouneed.data.store import Side
from allyouneed.run.run_bundle import usual_repetition


def test_the_bundle_keeps_how_much_the_targets_repeat() -> None:
    once, thrice = [[1, 2, 3]] * 999, [[4, 5, 5, 5, 6]]
    assert usual_repetition(Side.from_sentences(once + thrice * 2)) == 3
    assert usual_repetition(Side.from_sentences(once + thrice)) == 0  # it may be a fault
