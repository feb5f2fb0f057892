"""Which validation is the best, and when patience has run out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import runs
from allyouneed import Recipe, fit
from allyouneed.run import Evaluation, Validation
from allyouneed.run.best_model import is_best
from allyouneed.run.state import TrainState


def judged(*validations: tuple[int, float], first: int = 0, warmup: int = 0) -> tuple[TrainState, list[bool]]:
    state, best = TrainState(), []
    for state.step, goodness in validations:
        best.append(state.update_best(goodness, first=first, in_warmup=state.step <= warmup))
    return state, best


def test_a_model_that_has_hardly_begun_is_never_the_best() -> None:
    state, best = judged((2, 9.0), (50, 3.0), (100, 4.0), (150, 3.5), first=100)
    assert best == [True, True, True, False]  # before update 100 each replaces the one before
    assert (state.best_step, state.best, state.validations_since_best) == (100, 4.0, 1)


def test_patience_is_not_used_up_while_the_rate_still_rises() -> None:
    state, best = judged((10, 5.0), (20, 4.0), (30, 4.0), (40, 4.0), warmup=30)
    assert best == [True, False, False, False]
    assert (state.best_step, state.validations_since_best) == (10, 1)


def test_a_gain_too_small_to_tell_is_kept_but_does_not_prolong_the_run() -> None:
    state, best = judged((1, 50.0), (2, 50.02), (3, 50.04))
    assert best == [True, True, True]
    assert (state.best_step, state.validations_since_best) == (3, 2)
    state.step = 4
    assert state.update_best(50.06)  # small gains that add up are a gain
    assert state.validations_since_best == 0


def test_of_equal_scores_the_one_of_lower_loss_is_the_best() -> None:
    state, best = TrainState(), []
    for state.step, loss in enumerate((0.2, 0.1, 0.15), start=1):
        best.append(state.update_best(100.0, loss=loss))
    assert best == [True, True, False]
    assert (state.best_step, state.best_loss) == (2, 0.1)


def test_the_accuracy_of_tokens_may_decide() -> None:
    recipe = replace(runs.TINY, train=replace(runs.TINY.train, patience=2, early_stopping_metric="accuracy"))
    state, best = TrainState(), []
    for state.step, accuracy in enumerate((70.0, 90.0, 80.0), start=200):
        validation = Validation(state.step, None, 0.1, valid_loss=1.0, accuracy=accuracy, scores={"exact": 5.0})
        best.append(is_best(validation, recipe, state, has_valid=True))
    assert best == [True, True, False]


def test_a_short_run_with_patience_keeps_its_last_model(tmp_path: Path) -> None:
    falling = iter(range(9, 0, -1))
    settings = replace(
        runs.TINY.train, patience=2, early_stopping_metric="chrf", average_checkpoints=1, validate_every=2
    )
    recipe: Recipe = replace(runs.TINY, train=settings)
    fit(recipe, tmp_path / "run", evaluate=lambda bundle, pairs: Evaluation({"chrf": float(next(falling))}))
    assert "for 12 updates" in (tmp_path / "run" / "README.md").read_text()


def test_the_average_at_the_end_uses_up_no_patience(tmp_path: Path) -> None:
    def fit_with(patience: int, **options: Any) -> list[int]:
        watch = runs.Notebook()
        settings: dict[str, Any] = {
            "patience": patience,
            "early_stopping_metric": "chrf",
            "validate_every": 2,
            "steps": 400,
        }
        recipe = replace(runs.TINY, train=replace(runs.TINY.train, **settings))
        fit(recipe, tmp_path / "run", evaluate=lambda *_: Evaluation({"chrf": 1.0}), callback=watch, **options)
        return [validation.step for validation in watch.validations if validation.averaged == 1]

    last = fit_with(2)[-1]
    assert fit_with(3, resume=True) == [last + 2]
