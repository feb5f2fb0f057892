"""What more minutes would bring follows from the curve of a run."""

from typing import Any

import pytest

from allyouneed.apps.reports.prospect import look_ahead
from allyouneed.apps.reports.record import RunRecord


def make_run(errors: list[float], metric: str = "exact", **train: Any) -> RunRecord:
    lines = [
        {"seconds": 10.0 * number, "scores": {metric: 100 - error, "bleu": 0.0}, "averaged": 1}
        for number, error in enumerate(errors, start=1)
    ]
    settings = {"minutes": 3.0, "early_stopping_metric": metric} | train
    return RunRecord("run", {"train": settings}, lines, [], [], [], [], None, "")


def power_law(slope: float) -> list[float]:
    return [50 * (seconds / 9) ** -slope for seconds in range(1, 10)]


def test_a_score_that_rises_with_the_time_rises_half_as_fast_from_one_run_to_a_longer_one() -> None:
    prospect = look_ahead(make_run(power_law(0.5)))
    assert prospect is not None
    assert prospect.minutes == 12
    assert prospect.now == pytest.approx(50)
    assert prospect.then == pytest.approx(100 - 50 * 4**-0.25)
    assert str(prospect).endswith("about 12 minutes reach 65 in exact match, 50 now.")


@pytest.mark.parametrize(
    "run",
    [
        make_run([50.0] * 9),  # has settled
        make_run([50.0 + number for number in range(9)]),  # becomes worse
        make_run([2 * error / 100 for error in power_law(0.5)]),  # right already
        make_run([0.0] * 9),
        make_run(power_law(0.5)[-3:]),  # too short a curve
        make_run([]),
        make_run(power_law(0.5), minutes=0.0),  # as many updates as were asked for
    ],
)
def test_a_run_that_gains_nothing_or_shows_no_curve_is_not_told_to_go_on(run: RunRecord) -> None:
    assert look_ahead(run) is None


def test_where_the_loss_decides_chrf_is_extrapolated() -> None:
    run = make_run(power_law(0.5), metric="chrf", early_stopping_metric="loss")
    assert "in chrF2" in str(look_ahead(run))
