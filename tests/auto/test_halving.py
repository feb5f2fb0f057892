from collections.abc import Callable
from itertools import count

import pytest

from allyouneed.auto.halving import Trial, TrialRecord, best_record, count_candidates, next_trial


def record(trial: Trial, loss: float | None, score: float = 0.0, *, seconds: float | None = None) -> TrialRecord:
    used = trial.seconds if seconds is None else seconds
    return TrialRecord(trial.round, trial.candidate, {"n": trial.candidate}, used, 10, "exact", score, loss)


def run_all(candidates: int, seconds: float, loss: Callable[[int], float | None]) -> list[TrialRecord]:
    records: list[TrialRecord] = []
    while trial := next_trial(candidates, records, seconds):
        records.append(record(trial, loss(trial.candidate)))
    return records


@pytest.mark.parametrize(("seconds", "candidates"), [(0, 0), (18, 0), (31, 0), (33, 4), (90, 4), (270, 8), (9_999, 8)])
def test_the_time_decides_how_many_candidates_are_tried(seconds: float, candidates: int) -> None:
    assert count_candidates(seconds) == candidates


def test_trials_of_text_are_longer_and_therefore_fewer() -> None:
    assert [count_candidates(seconds, exact=False) for seconds in (18, 90, 120, 270, 360)] == [0, 0, 4, 4, 8]


def test_every_round_has_half_of_the_candidates_for_twice_as_long() -> None:
    records = run_all(8, 240, lambda number: 10 - number)
    assert [[r.candidate for r in records if r.round == n] for n in range(3)] == [[*range(8)], [0, 7, 6, 5], [0, 7]]
    assert [next(r.seconds for r in records if r.round == n) for n in range(3)] == [10, 20, 40]
    assert sum(r.seconds for r in records) == 240
    best = best_record(8, records)
    assert best
    assert best.candidate == 7


def test_the_rules_stay_unless_something_is_better_by_more_than_the_noise() -> None:
    slightly, clearly = ({0: 1.0, 1: loss} for loss in (0.99, 0.9))
    for losses, expected in ((slightly, 0), (clearly, 1)):
        best = best_record(2, run_all(2, 20, losses.__getitem__))
        assert best
        assert best.candidate == expected


def test_a_higher_score_counts_more_than_a_lower_loss() -> None:
    better = [record(Trial(0, 0, 5), 1.0, 10.0), record(Trial(0, 1, 5), 2.0, 30.0)]
    best = best_record(2, better)
    assert best
    assert best.candidate == 1


@pytest.mark.parametrize(
    ("score", "loss", "expected"), [(20.1, 2.0, 0), (21.7, 2.0, 0), (18.5, 0.5, 1), (22.0, 2.0, 1)]
)
def test_of_scores_that_differ_by_noise_the_loss_decides(score: float, loss: float, expected: int) -> None:
    best = best_record(2, [record(Trial(0, 0, 5), 1.0, 19.9), record(Trial(0, 1, 5), loss, score)])
    assert best
    assert best.candidate == expected


def test_of_several_better_ones_the_loss_decides_within_the_noise() -> None:
    scores = {0: (20.9, 1.0), 1: (21.9, 0.5), 2: (22.1, 0.99), 3: (15.0, 0.1)}
    records = [record(Trial(0, number, 5), loss, score) for number, (score, loss) in scores.items()]
    assert next_trial(4, records, 80) == Trial(1, 0, 20)
    best = best_record(4, records)
    assert best
    assert best.candidate == 1


def test_a_round_that_the_time_does_not_suffice_for_decides_nothing() -> None:
    slow = [record(Trial(0, number, 5), 1.0 - number / 10, seconds=39) for number in range(2)]
    assert next_trial(4, slow, 80) is None
    assert best_record(4, slow) is None
    full = [record(Trial(0, number, 5), 1.0 - number / 10, seconds=19) for number in range(4)]
    assert next_trial(4, full, 80) is None
    best = best_record(4, full)
    assert best
    assert best.candidate == 3


def test_models_without_a_finite_loss_lose() -> None:
    best = best_record(2, run_all(2, 20, {0: None, 1: 5.0}.__getitem__))
    assert best
    assert best.candidate == 1
    assert best_record(2, run_all(2, 20, lambda _: None)) == record(Trial(0, 0, 10), None)


def test_recorded_trials_are_not_repeated_and_give_the_same_decision() -> None:
    numbers = count()
    records = run_all(4, 80, lambda _: float(next(numbers)))
    for done in range(len(records)):
        trial = next_trial(4, records[:done], 80)
        assert trial
        assert (trial.round, trial.candidate) == (records[done].round, records[done].candidate)


@pytest.mark.parametrize("candidates", range(2, 9))
def test_any_number_of_candidates_ends_with_two(candidates: int) -> None:
    records = run_all(candidates, 240, lambda number: 10 - number)
    last = max(record.round for record in records)
    assert [record.candidate for record in records if record.round == last] == [0, candidates - 1]
    best = best_record(candidates, records)
    assert best
    assert best.candidate == candidates - 1
