"""A whole run: a recipe in, a bundle out, with a checkpoint at every pause.

output/recipe.toml               the recipe, every setting written out
output/data/                     the pairs, encoded; data-report.json says what was left out
output/checkpoint.safetensors    all that is needed to go on
output/snapshots/                weights at the last few pauses, for their mean
output/…                         the bundle, and what record.py writes

A pause writes the checkpoint last. So a run that is killed goes on from a pause that was wholly
written down, and writes the files of one that was not once more, the same.
"""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from math import isfinite
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..config import Recipe
from ..data.sampler import batches
from ..errors import ConfigError, Interrupted, TrainingError
from ..nn import Transformer
from ..train.averaging import ExponentialMovingAverage, average_snapshots, save_snapshot, snapshots, swapped_weights
from ..train.loop import Update, train
from ..train.recovery import MAX_SKIPPED_IN_A_ROW, Diverged, refuse_broken, rollback
from ..train.state import FEWEST_UPDATES, TOLERANCE, TrainState
from ..train.validation import validate
from .callback import Evaluation, Evaluator, TrainingCallback, Validation
from .checkpoint import load_checkpoint, save_checkpoint
from .interrupts import InterruptRequest
from .log import RunLog
from .model_card import model_card
from .report import write_report
from .training_data import TrainingData


class Run:
    """A model, what it learns from, and how far it has got."""

    def __init__(
        self,
        recipe: Recipe,
        output: Path,
        material: TrainingData,
        model: Transformer,
        optimizer: Optimizer,
        *,
        watch: TrainingCallback,
        judge: Evaluator | None,
        record: RunLog,
    ) -> None:
        self.recipe, self.output, self.material = recipe, output, material
        self.model, self.optimizer = model, optimizer
        self._watch, self._judge, self._record = watch, judge, record
        self._mean = ExponentialMovingAverage(model, decay=recipe.train.ema_decay) if recipe.train.ema_decay else None
        self._losses: list[Tensor] = []
        self._since = time.monotonic()
        self._pieces = 1
        self.state = TrainState()
        _refuse_patience_without_a_measure(recipe, material, judge)

    def message(self, topic: str, text: str) -> None:
        """Say a line, and write it down."""
        self._watch.on_message(topic, text)
        self._record.message(topic, text)

    def train(self, request: InterruptRequest) -> None:
        """Train to the end. When `request` has a signal, save and raise `Stopped`."""
        settings, self._pieces = self.recipe.train, self.state.micro_batches
        self._watch.on_train_begin(self.state.step, settings.steps)
        while True:
            feed = batches(
                self.material.train,
                batch_tokens=settings.batch_tokens,
                seed=settings.seed,
                pad_id=self.material.vocabulary.source.pad_id,
                target_pad_id=self.material.vocabulary.target.pad_id,
                skip=self.state.step * settings.accumulate_steps,
            )
            try:
                train(
                    self.model, self.optimizer, feed, settings,
                    on_update=lambda update: self._after(update, request), state=self.state,
                )  # fmt: skip
            except Diverged as why:
                self._rollback(why)
            else:
                break
        self._finish()

    def save(self) -> None:
        """Write the checkpoint: from here a killed run goes on."""
        now = time.monotonic()
        self.state.seconds, self._since = self.state.seconds + now - self._since, now
        save_checkpoint(
            self._checkpoint,
            self.model,
            self.optimizer,
            state=self.state,
            data=self.material.identity(),
            mean=self._mean.tensors if self._mean else None,
            losses=torch.stack(self._losses) if self._losses else None,
        )

    def restore(self) -> TrainState:
        """Everything as the checkpoint has it."""
        back = load_checkpoint(self._checkpoint, self.model, self.optimizer, data=self.material.identity())
        if self._mean:
            self._mean.restore(back.mean)
        self._losses = list(back.losses)
        return back.state

    @property
    def _checkpoint(self) -> Path:
        return self.output / "checkpoint.safetensors"

    def _after(self, update: Update, request: InterruptRequest) -> None:
        if update.skipped:
            self.message("skipped", f"update {update.step:,}: loss or gradient not finite")
        else:
            self._losses.append(update.loss)
            if self._mean:
                self._mean.update(self.model, step=update.step)
        if update.micro_batches > self._pieces:
            self._pieces = update.micro_batches
            self.message(
                "memory", f"out of memory at update {update.step:,}: batches now go in {update.micro_batches} pieces"
            )
        self._watch.on_update(update)
        if self.state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW:
            raise Diverged(f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite")
        is_last = update.step == self.recipe.train.steps
        if is_last and self.state.skipped_in_a_row == update.step:
            raise Diverged(f"all {update.step} updates were not finite")
        paused = update.step % self.recipe.train.validate_every == 0 or is_last
        if paused or request.signal is not None:  # a checkpoint that is sound is replaced by a sound one only
            refuse_broken(self._tensors())
        if paused:
            self._validate(update.learning_rate)
        if request.signal is not None and not self.state.stopped_early:
            if not paused:
                self.save()
            raise Interrupted(
                f"stopped after update {update.step:,} and saved; the same command with --resume goes on",
                signal=request.signal,
            )

    def _validate(self, rate: float) -> None:
        settings, place = self.recipe.train, self.state
        with swapped_weights(self.model, self._mean.tensors) if self._mean else nullcontext():
            pause = self._evaluate(rate)
            if not _is_sound(pause):
                raise Diverged("the validation loss was not finite")
            if self._is_to_be_left(pause):
                self._save_bundle(pause)
        place.stopped_early = 0 < settings.patience <= place.validations_since_best
        if place.skipped_in_a_row == 0:
            place.rollbacks = 0
        if settings.average_checkpoints > 1:
            save_snapshot(self._snapshots, self.model, step=place.step)
        self._losses.clear()
        self._record_validation(pause)
        self.save()
        for superfluous in snapshots(self._snapshots, until=place.step)[: -settings.average_checkpoints]:
            superfluous.unlink()
        if place.stopped_early:
            self.message("enough", f"{settings.patience} pauses without a {settings.early_stopping_metric} better by "
                      f"{TOLERANCE:.1%}; "
                      f"the best, after update {place.best_step:,}, is kept")  # fmt: skip

    def _finish(self) -> None:
        settings = self.recipe.train
        last = snapshots(self._snapshots, until=self.state.step)[-settings.average_checkpoints :]
        if settings.average_checkpoints > 1 and len(last) > 1 and not self.state.finished:
            with swapped_weights(self.model, average_snapshots(last)):
                pause = replace(self._evaluate(0.0), averaged=len(last))
                if _is_sound(pause) and self._is_to_be_left(pause):
                    self._save_bundle(pause)
            self._record_validation(pause)
        if not (self.output / "config.json").exists():
            raise TrainingError(
                f"no pause had a {settings.early_stopping_metric} that is a finite number, "
                "so none is the best and no model is left; "
                f"{self.output}/metrics.jsonl has the pauses; choose another train.early_stopping_metric"
            )
        self.state.finished = True
        self.save()

    def _is_to_be_left(self, pause: Validation) -> bool:
        settings = self.recipe.train
        if not settings.patience:
            return True
        goodness = _metric_value(pause, settings.early_stopping_metric)
        # A model that begins from a trained one is worth comparing from the first pause on.
        return self.state.update_best(
            goodness, first=0 if settings.init_from else FEWEST_UPDATES, warmup=settings.warmup
        )

    def _evaluate(self, rate: float) -> Validation:
        """Validate, and ask the judge."""
        place, material = self.state, self.material
        loss = torch.stack(self._losses).mean().item() if self._losses else None
        valid_loss, accuracy, verdict = None, None, Evaluation({})
        if material.valid is not None:
            valid_loss, accuracy = validate(self.model, material.valid, batch_tokens=self.recipe.train.batch_tokens)
        sound = valid_loss is None or isfinite(valid_loss)
        if sound and self._judge and (some := material.validation_samples(self.recipe.train.validate_samples)):
            self.model.eval()
            with torch.inference_mode():
                verdict = self._judge(material.bundle(self.model, self.recipe.decode), some)
            self.model.train()
        seconds = place.seconds + time.monotonic() - self._since
        return Validation(
            place.step, loss, rate, valid_loss, accuracy, verdict.scores, seconds, place.skipped,
            samples=verdict.samples,
        )  # fmt: skip

    def _save_bundle(self, pause: Validation) -> None:
        """The bundle, with the weights that the model wears just now."""
        text = model_card(
            self.output.name, self.model, pause, pairs=len(self.material.train), init_from=self.recipe.train.init_from
        )
        self.material.bundle(self.model, self.recipe.decode, card=text).save(self.output)
        self._record.write_outputs(pause.samples)

    def _record_validation(self, pause: Validation) -> None:
        self._record.validation(pause)
        write_report(self.output)
        self._watch.on_validation(pause)

    def _rollback(self, why: Diverged) -> None:
        at = self.state.step
        self.state = rollback(self.state, why, self.restore)
        self.save()
        self.message(
            "rescue",
            f"{why} at update {at:,}: back to update {self.state.step:,}, "
            f"with {self.state.learning_rate_factor:g} times the rate",
        )

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from (value for state in self.optimizer.state.values() for value in state.values())
        yield from self._mean.tensors.values() if self._mean else ()

    @property
    def _snapshots(self) -> Path:
        return self.output / "snapshots"


def _is_sound(pause: Validation) -> bool:
    return pause.valid_loss is None or isfinite(pause.valid_loss)


def _metric_value(pause: Validation, measure: str) -> float:
    if measure == "loss":
        return float("-inf") if pause.valid_loss is None else -pause.valid_loss
    return pause.scores[measure]


def _refuse_patience_without_a_measure(recipe: Recipe, material: TrainingData, judge: Evaluator | None) -> None:
    settings = recipe.train
    if not settings.patience:
        return
    if material.valid is None:
        raise ConfigError(f"train.patience={settings.patience} needs pairs to validate by; name them in data.valid")
    if settings.early_stopping_metric != "loss" and (judge is None or not settings.validate_samples):
        raise ConfigError(
            f'train.early_stopping_metric="{settings.early_stopping_metric}" needs validation pairs to be translated: '
            "set train.validate_samples to more than 0 and, from Python, give `fit` a judge; "
            'or use train.early_stopping_metric="loss"'
        )
