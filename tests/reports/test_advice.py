"""What to try next follows from what the run shows."""

import re
from dataclasses import replace
from typing import Any

import pytest

from allyouneed.apps.reports.advice import Evidence, advise, longer_options, look_ahead
from allyouneed.apps.reports.record import HeldOutResult, RunRecord
from allyouneed.data.report import DataReport, PartReport, RuleCount
from messages import numbers_in


def make_result(chrf: float = 40.0, exact: float = 1.0, **baselines: float) -> HeldOutResult:
    baselines = {"copy": 5.0} | baselines
    scores = {"model": {"chrf": chrf, "exact": exact}} | {name: {"chrf": value} for name, value in baselines.items()}
    return HeldOutResult(10, 100, 100, 0, scores, {"chrf": (chrf - 3, chrf + 3), "exact": (exact, exact)}, {})


def make_run(losses: list[float], training: float = 1.0, data: DataReport | None = None, **train: Any) -> RunRecord:
    lines = [
        {"step": 100 * number, "loss": training, "valid_loss": loss, "averaged": 1, "scores": {}}
        for number, loss in enumerate(losses, start=1)
    ]
    return RunRecord("run", {"train": train}, lines, [], [], [], [], data, "")


def first_advice(run: RunRecord, result: HeldOutResult | None = None, **evidence: int) -> str:
    return next(iter(advise(result or make_result(), run, Evidence(**evidence), pairs=100_000)), "")


FLAT = [4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
FALLING = [4.0, 3.5, 3.2, 3.0, 2.9, 2.8, 2.7, 2.6, 2.5, 2.4]
RISING = [4.0, 3.0, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7]


@pytest.mark.parametrize(
    ("run", "advice"),
    [
        (make_run(FALLING), "fell by 8% .* to 2.400"),
        (make_run(FALLING), "--resume train.steps=2000"),
        (make_run(FALLING, steps=5000, patience=10), "--resume train.patience=20"),
        (make_run(FALLING, steps=1000, patience=10), "--resume train.steps=2000"),
        (make_run(FALLING, minutes=5), "--resume --minutes 10"),
        (make_run(RISING), r"update 300 \(2.000\) .* to 2.700"),
        (make_run(FLAT, training=1.0), "training loss, 1.000, .*validation loss, 2.000: more pairs"),
        (make_run(FLAT, training=1.9), "settled at 2.000"),
        (make_run(FLAT, training=1.0, label_smoothing=0.1), "settled at 2.000"),  # the losses are not comparable
        (make_run([3.0]), ""),
    ],
)
def test_the_losses_say_whether_longer_training_or_more_pairs_help(run: RunRecord, advice: str) -> None:
    assert re.search(advice, first_advice(run))


def test_a_good_model_needs_no_advice_unless_a_baseline_is_as_good() -> None:
    assert advise(make_result(exact=95), make_run(FALLING), Evidence(), pairs=10) == []
    assert advise(make_result(chrf=80, copy=60, nearest=50), make_run(FALLING), Evidence(), pairs=10) == []
    advice = first_advice(make_run(FALLING), make_result(chrf=80, copy=78, nearest=50))
    assert "(chrF2 80.0 against 78.0)" in advice
    assert "(--resume train.steps=2000)" in advice
    assert "nearest" in first_advice(make_run(FLAT), make_result(chrf=30, copy=5, nearest=29))


def test_a_model_without_an_error_is_not_to_be_trained_longer() -> None:
    result = replace(make_result(chrf=100, exact=100, copy=100), intervals={"chrf": (100.0, 100.0)})
    (advice,) = advise(result, make_run(FALLING), Evidence(), pairs=10)
    assert "(chrF2 100.0 against 100.0)" in advice
    assert "--resume" not in advice


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        ({"train": "pairs.tsv"}, "both sides"),
        ({"train": ["pairs.en", "pairs.it"]}, "line n "),
        ({"train": [], "corpus": [{"train": ["a", "b"]}]}, "line n "),
    ],
)
def test_the_alignment_to_check_is_that_of_the_files(data: dict[str, Any], advice: str) -> None:
    run = make_run(FLAT)
    assert advice in first_advice(replace(run, settings={**run.settings, "data": data}), make_result(copy=40.0))


def test_few_and_noisy_pairs_are_named() -> None:
    part = PartReport(read=1_000, used=800)
    part.dropped["empty"] = RuleCount(150)
    part.dropped["max_train_samples"] = RuleCount(50)
    part.dropped["overlap_source"] = RuleCount(400)  # of pairs like those that are held out
    run = make_run(FLAT, data=DataReport(train=part))
    advice = advise(make_result(), run, Evidence(seen=50, contradicted=20), pairs=800)
    assert numbers_in(advice[1])[:2] == [20, 50]
    assert re.match("15% .*\\(150 ", advice[2])
    assert advice[3].startswith("800 training pairs ")
    assert len(advise(make_result(), make_run(FLAT), Evidence(seen=50, contradicted=5), pairs=30_000)) == 1


def test_a_model_of_a_few_updates_is_only_to_be_trained_longer() -> None:
    run = make_run([4.0])
    run.validations[0]["step"] = 40
    advice = advise(make_result(chrf=5.0), run, Evidence(), pairs=100)
    assert len(advice) == 1
    assert " 40 " in advice[0]


def make_timed_run(errors: list[float], metric: str = "exact", **train: Any) -> RunRecord:
    lines = [
        {"seconds": 10.0 * number, "scores": {metric: 100 - error, "bleu": 0.0}, "averaged": 1}
        for number, error in enumerate(errors, start=1)
    ]
    settings = {"minutes": 3.0, "early_stopping_metric": metric} | train
    return RunRecord("run", {"train": settings}, lines, [], [], [], [], None, "")


def power_law(slope: float) -> list[float]:
    return [50 * (seconds / 9) ** -slope for seconds in range(1, 10)]


def test_a_score_that_rises_with_the_time_rises_half_as_fast_from_one_run_to_a_longer_one() -> None:
    prospect = look_ahead(make_timed_run(power_law(0.5)))
    assert prospect is not None
    assert prospect.minutes == 12
    assert prospect.now == pytest.approx(50)
    assert prospect.then == pytest.approx(100 - 50 * 4**-0.25)
    assert str(prospect).endswith("about 12 minutes reach 65 in exact match, 50 now.")


@pytest.mark.parametrize(
    "run",
    [
        make_timed_run([50.0] * 9),  # has settled
        make_timed_run([50.0 + number for number in range(9)]),  # becomes worse
        make_timed_run([2 * error / 100 for error in power_law(0.5)]),  # right already
        make_timed_run([0.0] * 9),
        make_timed_run(power_law(0.5)[-3:]),  # too short a curve
        make_timed_run([]),
        make_timed_run(power_law(0.5), minutes=0.0),  # as many updates as were asked for
    ],
)
def test_a_run_that_gains_nothing_or_shows_no_curve_is_not_told_to_go_on(run: RunRecord) -> None:
    assert look_ahead(run) is None


@pytest.mark.parametrize(
    ("decides", "metric", "title"), [("loss", "chrf", "chrF2"), ("accuracy", "exact", "exact match")]
)
def test_where_a_measure_of_tokens_decides_a_score_is_extrapolated(decides: str, metric: str, title: str) -> None:
    run = make_timed_run(power_law(0.5), metric=metric, early_stopping_metric=decides)
    assert f"in {title}" in str(look_ahead(run))


@pytest.mark.parametrize("losses", [FLAT, FALLING, RISING])
def test_one_verdict_says_whether_longer_training_helps_and_how_long(losses: list[float]) -> None:
    run = make_timed_run(power_law(0.5))
    for number, (line, loss) in enumerate(zip(run.validations, losses, strict=False), start=1):
        line.update(step=100 * number, loss=1.9, valid_loss=loss)
    prospect, first = look_ahead(run), first_advice(run)
    assert "change little" not in first
    assert (prospect is None) == ("by heart" in first)
    if prospect:
        assert longer_options(run) == ("--resume", "--minutes", str(prospect.minutes))
        assert first == "" or " ".join(longer_options(run)) in first


def test_a_longer_training_has_more_time_than_was_used() -> None:
    slow = make_timed_run([50.0] * 9, minutes=1.0)
    assert longer_options(slow) == ("--resume", "--minutes", "3")  # after 90 seconds
