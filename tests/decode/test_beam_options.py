"""Length penalties, and when the hypotheses that ended are enough, worked by hand."""

import math
from typing import Any

import pytest

from allyouneed.decode import BeamOptions, Hypothesis, best_first, length_penalty, plain_length_penalty


def test_the_length_penalty_of_wu_et_al() -> None:
    assert length_penalty(1, alpha=0.6) == 1.0
    assert math.isclose(length_penalty(7, alpha=1.0), 2.0)
    assert length_penalty(30, alpha=0.0) == 1.0


def test_the_plain_length_penalty() -> None:
    assert [plain_length_penalty(4, alpha=alpha) for alpha in (0.0, 0.5, 1.0)] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("scores", "settings", "is_decided"),
    [
        ((-0.6, -0.9), {"patience": 1.0}, True),  # -0.6 beats -4 / 5, what an active one can reach at the next step
        ((-0.6, -0.9), {"patience": 2.0}, False),  # it does not beat -4 / 10, what one can reach at the limit
        ((-0.6,), {"patience": 1.0}, False),
        ((-0.6, -1.1), {"patience": 1.0}, True),
        ((-0.6, -1.1), {"patience": 1.0, "nbest": 2}, False),
        ((-0.6, -0.9), {"wait_for_beam": True}, True),  # both beat -4 / 4, what an active one has now
        ((-0.6, -1.1), {"wait_for_beam": True}, False),
        ((-0.6,), {"wait_for_beam": True}, False),
    ],
)
def test_a_search_goes_on_until_the_hypotheses_that_ended_are_enough(
    scores: tuple[float, ...], settings: dict[str, Any], is_decided: bool
) -> None:
    options = BeamOptions(beam=2, alpha=1.0, penalty=plain_length_penalty, **settings)
    ended = [Hypothesis([], score, score) for score in scores]
    assert options.is_decided(ended, -4.0, 4, 10) is is_decided


def test_a_finished_hypothesis_comes_before_a_better_one_that_was_cut_off() -> None:
    unfinished, finished = Hypothesis([2], -1.0, -1.0, finished=False), Hypothesis([3], -2.0, -2.0)
    assert best_first([unfinished, finished]) == [finished, unfinished]
