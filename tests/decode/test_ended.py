"""When the ended hypotheses of a beam search are enough, worked by hand."""

from typing import Any

import pytest

from allyouneed.decode import BeamOptions, Hypothesis
from allyouneed.decode.beam_options import plain_length_penalty
from allyouneed.decode.ended import EndedHypotheses, best_first


@pytest.mark.parametrize(
    ("scores", "settings", "goes_on"),
    [
        ((-0.6, -0.9), {"patience": 1.0}, False),  # -0.6 beats -4 / 5, what an active one can reach at the next step
        ((-0.6, -0.9), {"patience": 2.0}, True),  # it does not beat -4 / 10, what one can reach at the limit
        ((-0.6,), {"patience": 1.0}, True),
        ((-0.6, -1.1), {"patience": 1.0}, False),
        ((-0.6, -0.9), {"wait_for_beam": True}, False),  # both beat -4 / 4, what an active one has now
        ((-0.6, -1.1), {"wait_for_beam": True}, True),
        ((-0.6,), {"wait_for_beam": True}, True),
    ],
)
def test_a_search_goes_on_until_the_hypotheses_that_ended_are_enough(
    scores: tuple[float, ...], settings: dict[str, Any], goes_on: bool
) -> None:
    options = BeamOptions(beam=2, alpha=1.0, penalty=plain_length_penalty, **settings)
    ended = EndedHypotheses(10, lambda: False, options)
    for score in scores:
        ended.add([], score, 1)
    assert ended.goes_on(-4.0, [], 4) is goes_on


def test_a_finished_hypothesis_comes_before_a_better_one_that_was_cut_off() -> None:
    unfinished, finished = Hypothesis([2], -1.0, -1.0, finished=False), Hypothesis([3], -2.0, -2.0)
    assert best_first([unfinished, finished]) == [finished, unfinished]
