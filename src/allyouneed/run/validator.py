"""The validations of a run: measure the model, keep the best one, and write logs and pages."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any

import torch

from ..bundle import Bundle, builder_name
from ..config import Recipe
from ..data.pairs import Pair
from ..errors import ConfigError, SlowerEngineWarning, TrainingError
from ..machine.files import followed
from ..nn import Transformer
from ..train.averaging import swapped_weights
from ..train.loop import Update
from ..train.validation import validate
from .budget import VALIDATION_SHARE, Budget
from .callback import WITHOUT_TRANSLATIONS, Evaluation, Validation
from .checkpoint import average_snapshots, remove_snapshots, save_snapshot
from .log import FILM_FILE, Film, RunLog, is_filmed, mean_gradient_norm
from .run_bundle import make_bundle, model_card
from .setup import Setup
from .state import MIN_UPDATES, TrainState


def is_best(validation: Validation, recipe: Recipe, state: TrainState, *, valid_tokens: int) -> bool:
    """Return True if the model of a validation replaces earlier models; also count the validation in `state`.

    `valid_tokens` is the number of target tokens of the validation pairs; 0 if there are none.

    Without patience and without a time budget the last model is the result, so each model replaces the previous one.
    """
    settings = recipe.train
    if not (settings.patience or (settings.minutes and valid_tokens)):
        return True
    value = _metric_value(validation, settings.early_stopping_metric)
    # a model that starts from trained weights can be compared from the first validation on
    first = 0 if settings.init_from else MIN_UPDATES
    in_warmup = state.position(settings) <= settings.warmup
    tokens = valid_tokens if settings.early_stopping_metric == "accuracy" else 0
    return state.update_best(value, loss=validation.valid_loss, first=first, in_warmup=in_warmup, tokens=tokens)


def _metric_value(validation: Validation, metric: str) -> float:
    if metric == "loss":
        return float("-inf") if validation.valid_loss is None else -validation.valid_loss
    if metric == "accuracy":
        return float("-inf") if validation.accuracy is None else validation.accuracy
    if metric not in validation.scores:
        known = ", ".join([*WITHOUT_TRANSLATIONS, *validation.scores])
        raise ConfigError(f'train.early_stopping_metric="{metric}" is not a score of this run; it has {known}')
    return validation.scores[metric]


class Validator:
    """Does the work of a run's first worker at each validation and at the end.

    `seconds` returns the training time so far.
    """

    def __init__(
        self,
        setup: Setup,
        log: RunLog,
        budget: Budget,
        seconds: Callable[[], float],
    ) -> None:
        self._recipe = setup.recipe
        self._output = setup.output
        self._data = setup.data
        self._languages = setup.languages
        self._valid_tokens = len(valid.target.ids) - len(valid) if (valid := self._data.valid) else 0
        self._builder = builder_name(setup.hooks.build_model)
        self._made: Bundle | None = None
        self._film = Film(setup.output / FILM_FILE, setup.hooks.film) if setup.hooks.film else None
        self._callback = setup.hooks.callback
        self._evaluate = setup.hooks.evaluate
        self._report = setup.hooks.report
        self._log = log
        self._budget = budget
        self._expected_warnings: tuple[type[Warning], ...] = ()
        self._seconds = seconds
        self._snapshots = setup.output / "snapshots"

    def validate(
        self,
        model: Transformer,
        state: TrainState,
        *,
        learning_rate: float,
        speed: float | None,
        course: Sequence[Mapping[str, Any]],
    ) -> str:
        """Validate, and save everything except the checkpoint. If the model has diverged, only return the reason.

        `speed` is in target tokens per second. `course` has the lines about the updates since the last validation.
        """
        settings = self._recipe.train
        begin = self._budget.used()
        with swapped_weights(model, state.ema) if state.ema else nullcontext():
            validation = self._measure(model, state, learning_rate, speed)
            if not _is_finite(validation):
                return "the validation loss was not finite"
            self._save_if_best(model, state, validation)
        state.check_patience(settings)
        if state.skipped_in_a_row == 0:
            state.rollbacks = 0
        if settings.average_checkpoints > 1:
            save_snapshot(self._snapshots, model, step=state.step)
            state.snapshots = [*state.snapshots, state.step][-settings.average_checkpoints :]
        self._log.updates(course)
        state.losses.clear()
        state.gradient_norms.clear()
        self._record(validation)
        self._budget.count_validation(state, begin)
        return ""

    def film(self, model: Transformer, state: TrainState, update: Update | None, *, is_last: bool = False) -> None:
        """Add a frame to the film, if the run has one and a frame is due after this update (None: before the first)."""
        if self._film is None:
            return
        if update:
            self._film.count(update)
        if is_last or is_filmed(state.step):
            self._film.add(self._bundle(model), step=state.step)

    def expect_slower_engines(self) -> None:
        """Stop warning that the slower code of the model translates, because the run has already said so."""
        self._expected_warnings = (SlowerEngineWarning,)

    def remove_old_snapshots(self, state: TrainState) -> None:
        """Remove the snapshots that neither the last checkpoint nor the average at the end needs."""
        remove_snapshots(self._snapshots, keep=state.snapshots)

    def finish(self, model: Transformer, state: TrainState) -> None:
        """Validate the average of the last snapshots, if any. Refuses a run that has no model to keep."""
        steps = state.snapshots
        if len(steps) > 1 and not state.finished:
            with swapped_weights(model, average_snapshots(self._snapshots, steps)):
                validation = replace(self._measure(model, state, 0.0, None), averaged=len(steps))
                if _is_finite(validation):
                    patience = state.validations_since_best, state.level
                    self._save_if_best(model, state, validation)
                    state.validations_since_best, state.level = patience  # in case the run is extended
            self._record(validation)
        if not (self._output / "config.json").exists():
            metric = self._recipe.train.early_stopping_metric
            raise TrainingError(
                f"{metric} was not a finite number at any validation, so there is no best model to keep; "
                f"{self._output}/metrics.jsonl has the values; choose another train.early_stopping_metric"
            )
        state.finished = True

    def _measure(self, model: Transformer, state: TrainState, learning_rate: float, speed: float | None) -> Validation:
        """Measure validation loss and accuracy, and the scores of the evaluator."""
        settings = self._recipe.train
        loss = torch.stack(state.losses).mean().item() if state.losses else None
        valid_loss = None
        accuracy = None
        evaluation = Evaluation({})
        if self._data.valid is not None:
            valid_loss, accuracy = validate(model, self._data.valid, batch_tokens=settings.batch_tokens)
        is_finite = valid_loss is None or isfinite(valid_loss)
        if is_finite and self._evaluate and (pairs := self._data.validation_samples(settings.validate_samples)):
            model.eval()
            with torch.inference_mode(), warnings.catch_warnings():
                for category in self._expected_warnings:
                    warnings.simplefilter("ignore", category)
                bundle = self._bundle(model)
                evaluation = self._evaluate(bundle, self._affordable(pairs, state, partial(self._evaluate, bundle)))
            self.expect_slower_engines()  # this validation has already warned
            model.train()
        return Validation(
            state.step, loss, learning_rate, valid_loss, accuracy, evaluation.scores, self._seconds(), state.skipped,
            gradient_norm=mean_gradient_norm(state), tokens_per_second=speed, samples=evaluation.samples,
        )  # fmt: skip

    def _affordable(
        self, pairs: list[Pair], state: TrainState, evaluate: Callable[[Sequence[Pair]], Evaluation]
    ) -> list[Pair]:
        """Choose the pairs to translate at a validation: all of them, or as many as a time budget can afford."""
        if not self._recipe.train.minutes:
            return pairs
        # A model that has learned little may translate slowly, so the number is chosen again during the first quarter.
        if not state.validation_samples or state.position(self._recipe.train) < self._recipe.train.steps / 4:
            before = state.validation_samples
            now = self._budget.count_samples(evaluate, pairs)
            if now != before:
                # Scores of a different number of pairs cannot be compared.
                state.validation_samples, state.best, state.level = now, None, None
            if now != before and (count := len(self._data.validation_samples(now))) < len(pairs):
                text = (
                    f"each validation translates {count} of {len(pairs)} pairs, so that validations take at most "
                    f"{VALIDATION_SHARE:.0%} of the time"
                )
                self._message("budget", text)
        return self._data.validation_samples(state.validation_samples)

    def _save_if_best(self, model: Transformer, state: TrainState, validation: Validation) -> None:
        """Write a bundle with the model's current weights, unless an earlier model is better."""
        if is_best(validation, self._recipe, state, valid_tokens=self._valid_tokens):
            pairs = len(self._data.train)
            name = followed(self._output).name
            card = model_card(name, self._recipe, pairs, model, validation, self._languages)
            self._bundle(model, card).save(self._output)
            self._log.write_outputs(validation.samples)

    def _bundle(self, model: Transformer, card: str = "") -> Bundle:
        if self._made is None:  # counts the statistics of the pairs only once
            self._made = make_bundle(self._recipe, self._data, model, self._languages, builder=self._builder)
        return replace(self._made, model=model, card=card)

    def _message(self, topic: str, text: str) -> None:
        self._callback.on_message(topic, text)
        self._log.message(topic, text)

    def _record(self, validation: Validation) -> None:
        self._log.validation(validation)
        self._report(self._output, self._message, running=True)
        self._callback.on_validation(validation)


def _is_finite(validation: Validation) -> bool:
    return validation.valid_loss is None or isfinite(validation.valid_loss)
