"""Which validation is the best, and when patience has run out."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import runs
from allyouneed import Bundle, OutputError, Recipe, fit
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.errors import TrainingError, is_out_of_memory
from allyouneed.fast.loss import projected_loss
from allyouneed.nn import Transformer
from allyouneed.run import Evaluation, Validation
from allyouneed.run.state import MAX_SKIPPED_IN_A_ROW, Outcome, TrainState, rollback
from allyouneed.run.validator import is_best
from allyouneed.train import Update
from allyouneed.train.gradients import BatchLoss
from messages import numbers_in
from runs import TINY, Notebook, StopAt, read_weights


def test_outcomes_are_counted_one_update_later() -> None:
    state, counts = TrainState(), []
    for finite in (True, False, False, True, True):
        state.outcomes.append(Outcome(torch.tensor(finite)))
        state.count_outcomes(later=1)
        counts.append((state.skipped, state.skipped_in_a_row))
    assert counts == [(0, 0), (0, 0), (1, 1), (2, 2), (2, 0)]
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row, len(state.outcomes)) == (2, 0, 0)


def test_five_in_a_row_are_seen_also_where_a_finite_one_follows_before_the_count() -> None:
    state = TrainState()
    state.outcomes = [Outcome(torch.tensor(finite)) for finite in [False] * MAX_SKIPPED_IN_A_ROW + [True]]
    state.count_outcomes()
    assert state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row) == (MAX_SKIPPED_IN_A_ROW, 0)


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
        best.append(is_best(validation, recipe, state, valid_tokens=1_000))
    assert best == [True, True, False]


@pytest.mark.parametrize(
    ("tokens", "is_kept"),
    [(5, True), (6, False)],  # the standard error of 90 % is 13.4 and 12.2
)
def test_of_accuracies_a_standard_error_apart_the_latest_model_is_kept(tokens: int, is_kept: bool) -> None:
    recipe = replace(runs.TINY, train=replace(runs.TINY.train, patience=2, early_stopping_metric="accuracy"))
    state, best = TrainState(), []
    for state.step, accuracy in enumerate((90.0, 77.0, 77.0), start=200):
        validation = Validation(state.step, None, 0.1, valid_loss=1.0, accuracy=accuracy, scores={})
        best.append(is_best(validation, recipe, state, valid_tokens=tokens))
    assert best == [True, is_kept, is_kept]
    assert state.best == 90  # what later models are compared with does not sink


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
            "validate_every": 20,
            "steps": 400,
        }
        recipe = replace(runs.TINY, train=replace(runs.TINY.train, **settings))
        fit(recipe, tmp_path / "run", evaluate=lambda *_: Evaluation({"chrf": 1.0}), callback=watch, **options)
        return [validation.step for validation in watch.validations if validation.averaged == 1]

    last = fit_with(2)[-1]
    assert fit_with(3, resume=True) == [last + 20]


NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory (MPS allocated: 20 GiB, other allocations: 1 GiB, max allowed: 20 GiB)."),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: …"),
]


def plant(monkeypatch: pytest.MonkeyPatch, loss_of: BatchLoss) -> None:
    """Let a run compute its losses by another function, without comparing it with the definition."""
    monkeypatch.setattr("allyouneed.run.run.choose_loss", lambda model, config: (loss_of, ""))


@pytest.mark.slow
@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_when_memory_runs_out_batches_are_cut_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """From update 5 on only four sentences fit; without dropout it learns as if nothing had been."""
    recipe = replace(TINY, model=replace(TINY.model, dropout=0.0))

    class Counting(Notebook):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Update] = []

        def on_update(self, update: Update, steps: int) -> None:
            self.seen.append(update)

    straight, watch = Counting(), Counting()
    fit(recipe, tmp_path / "straight", callback=straight)

    def short_of_memory(model: Transformer, batch: Batch, config: TrainConfig) -> torch.Tensor:
        if len(watch.seen) >= 4 and len(batch.source) > 4:
            raise error
        return projected_loss(model, batch, config)

    plant(monkeypatch, short_of_memory)
    fit(recipe, tmp_path / "run", callback=watch)
    messages = [line for line in watch.lines if line.startswith("memory")]
    assert numbers_in(messages[0]) == [5, 4]
    assert len(messages) == 1
    for ours, reference in zip(watch.seen, straight.seen, strict=True):
        torch.testing.assert_close(ours.loss, reference.loss, rtol=1e-3, atol=1e-3)


def test_memory_too_small_for_one_sentence_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("no")

    plant(monkeypatch, none)
    with pytest.raises(TrainingError, match="sentence pair"):
        fit(TINY, tmp_path / "run")


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "MPS backend out of memory (MPS allocated: 8 GB)",
    ],
)
def test_every_kind_of_memory_that_runs_out_is_known(text: str) -> None:
    assert is_out_of_memory(RuntimeError(text))


def test_another_error_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_out_of_memory(RuntimeError("shapes do not match"))

    def fault(*_: object, **__: object) -> torch.Tensor:
        raise RuntimeError("shapes do not match")

    plant(monkeypatch, fault)
    with pytest.raises(RuntimeError, match="shapes"):
        fit(TINY, tmp_path / "run")


def not_finite_at(monkeypatch: pytest.MonkeyPatch, calls: set[int]) -> None:
    """Make these calls of the loss, counted from 1, give infinity."""
    count = 0

    def sometimes(model: Transformer, batch: Batch, config: TrainConfig) -> torch.Tensor:
        nonlocal count
        count += 1
        value = projected_loss(model, batch, config)
        return value * float("inf") if count in calls else value

    plant(monkeypatch, sometimes)


def test_updates_not_finite_are_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_finite_at(monkeypatch, {2, 6, 7})
    watch = Notebook()
    result = fit(TINY, tmp_path / "run", callback=watch)
    assert [validation.skipped for validation in watch.validations] == [1, 3, 3, 3]
    assert [6] in [numbers_in(line) for line in watch.lines if line.startswith("skipped: ")]
    assert not [line for line in watch.lines if line.startswith("rollback")]
    assert all(parameter.isfinite().all() for parameter in result.model.parameters())


def test_several_in_a_row_go_back_to_the_last_checkpoint_with_half_the_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rates(Notebook):
        def on_update(self, update: Update, steps: int) -> None:
            rates[update.step] = update.learning_rate

    rates: dict[int, float] = {}
    fit(TINY, tmp_path / "straight", callback=Rates())
    straight, rates = rates, {}
    not_finite_at(monkeypatch, {6, 7, 8, 9, 10})
    watch = Rates()
    recipe = replace(TINY, train=replace(TINY.train, validate_every=5, steps=14))
    fit(recipe, tmp_path / "run", callback=watch)
    assert [5, 10, 5, 0.5] in [numbers_in(line) for line in watch.lines if line.startswith("rollback: ")]
    assert rates[5] == straight[5]
    assert [rates[step] / straight[step] for step in (6, 10)] == [0.5, 0.5]
    assert watch.validations[-1].skipped == 5


def test_a_run_that_goes_back_still_knows_how_small_its_batches_must_be() -> None:
    diverged = TrainState(micro_batches=4, learning_rate_factor=0.5, rollbacks=1, skipped=7, skipped_in_a_row=5)
    restored = rollback(diverged, "reason", lambda: TrainState(skipped=2))
    assert (restored.micro_batches, restored.learning_rate_factor) == (4, 0.25)
    assert (restored.rollbacks, restored.skipped, restored.skipped_in_a_row) == (2, 7, 0)


def test_a_run_that_cannot_be_rescued_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_finite_at(monkeypatch, set(range(5, 1000)))
    recipe = replace(TINY, train=replace(TINY.train, steps=100, validate_every=50))
    with pytest.raises(TrainingError, match=r"update 5, .*0\.03125"):
        fit(recipe, tmp_path / "run")


class FullAfter:
    """A disk with room for so many more files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
        self.left, self.flush = files, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, file: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.flush(file)


@pytest.mark.slow
@pytest.mark.parametrize("files", range(20, 33, 4))
def test_a_full_disk_stops_the_run_with_its_last_checkpoint_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    fit(TINY, tmp_path / "straight")
    with monkeypatch.context() as patch:
        FullAfter(patch, files)
        with pytest.raises(OutputError, match="disk"):
            fit(TINY, tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.partial"))
    fit(TINY, tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(tmp_path / "straight")


def test_a_rescued_run_can_be_killed_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    not_finite_at(monkeypatch, {5, 6, 7, 8, 9})
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", callback=StopAt(10))
    watch = Notebook()
    fit(TINY, tmp_path / "run", resume=True, callback=watch)
    assert watch.validations[-1].skipped == 5


class Breaks(Notebook):
    """A `Watch` that breaks a number of the model's weights, once, after some update."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int, *, always: bool = False) -> None:
        super().__init__()
        self._step, self._always, self._broken = step, always, False
        self._models: list[Transformer] = []
        make = Transformer.__init__

        def made(model: Transformer, *arguments: object, **parts: object) -> None:
            make(model, *arguments, **parts)  # type: ignore[arg-type]
            self._models.append(model)

        monkeypatch.setattr(Transformer, "__init__", made)

    def on_update(self, update: Update, steps: int) -> None:
        if update.step == self._step and (self._always or not self._broken):
            self._broken = True
            with torch.no_grad():
                next(self._models[0].parameters()).view(-1)[0] = float("nan")


def test_a_checkpoint_of_broken_weights_never_replaces_a_sound_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Breaks(monkeypatch, 8)
    result = fit(TINY, tmp_path / "run", callback=watch)
    assert [8, 4, 0.5] in [numbers_in(line) for line in watch.lines if line.startswith("rollback: ")]
    assert all(parameter.isfinite().all() for parameter in result.model.parameters())
    assert [validation.step for validation in watch.validations] == [4, 8, 12, 12]
    assert "NaN" not in (tmp_path / "run/metrics.jsonl").read_text()


def test_a_run_that_always_diverges_ends_as_an_error_with_its_last_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrainingError, match=r"weights .*update 8, .*0\.03125"):
        fit(TINY, tmp_path / "run", callback=Breaks(monkeypatch, 8, always=True))
    kept = Bundle.load(tmp_path / "run").model
    assert all(parameter.isfinite().all() for parameter in kept.parameters())


def test_a_validation_that_is_not_finite_is_a_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.run.validator.validate", lambda *_, **__: (float("nan"), 0.0))
    with pytest.raises(TrainingError, match="loss .*update 4, "):
        fit(TINY, tmp_path / "run")
    assert not (tmp_path / "run/config.json").exists()


def test_a_short_run_none_of_whose_updates_was_finite_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_finite_at(monkeypatch, set(range(1, 1000)))
    with pytest.raises(TrainingError, match="all 3 .*update 3"):
        fit(replace(TINY, train=replace(TINY.train, steps=3)), tmp_path / "run")


def test_a_score_that_is_no_number_is_never_the_best_and_stands_as_null(tmp_path: Path) -> None:
    settings = replace(TINY.train, patience=9, early_stopping_metric="chrf", average_checkpoints=1)
    scores = iter([1.0, float("nan"), 0.5])
    watch = Notebook()
    fit(replace(TINY, train=replace(settings, steps=12)), tmp_path / "run", callback=watch,
        evaluate=lambda bundle, pairs: Evaluation({"chrf": next(scores)}))  # fmt: skip
    text = (tmp_path / "run/metrics.jsonl").read_text()
    lines = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    assert [line["scores"]["chrf"] for line in lines] == [1.0, None, 0.5]
    with pytest.raises(TrainingError, match="chrf"):
        fit(replace(TINY, train=settings), tmp_path / "none", evaluate=lambda *_: Evaluation({"chrf": float("nan")}))
