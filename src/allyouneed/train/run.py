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
from .average import RunningMean, mean_of, save_snapshot, snapshots, wearing
from .card import card
from .checkpoint import load_checkpoint, save_checkpoint
from .loop import Update, train
from .material import Material
from .place import FEWEST_UPDATES, TOLERANCE, Place
from .record import Record
from .report import write_report
from .rescue import SKIPPED_IN_A_ROW, Diverged, refuse_broken, retreat
from .stop import Request
from .validate import validate
from .watch import Judge, Pause, Verdict, Watch


class Run:
    """A model, what it learns from, and how far it has got."""

    def __init__(
        self,
        recipe: Recipe,
        output: Path,
        material: Material,
        model: Transformer,
        optimizer: Optimizer,
        *,
        watch: Watch,
        judge: Judge | None,
        record: Record,
    ) -> None:
        self.recipe, self.output, self.material = recipe, output, material
        self.model, self.optimizer = model, optimizer
        self._watch, self._judge, self._record = watch, judge, record
        self._mean = RunningMean(model, keep=recipe.train.ema_decay) if recipe.train.ema_decay else None
        self._losses: list[Tensor] = []
        self._since = time.monotonic()
        self._pieces = 1
        self.place = Place()
        _refuse_patience_without_a_measure(recipe, material, judge)

    def tell(self, topic: str, text: str) -> None:
        """Say a line, and write it down."""
        self._watch.tell(topic, text)
        self._record.tell(topic, text)

    def go(self, request: Request) -> None:
        """Train to the end. When `request` has a signal, save and raise `Stopped`."""
        settings, self._pieces = self.recipe.train, self.place.pieces
        self._watch.began(self.place.step, settings.steps)
        while True:
            feed = batches(
                self.material.train,
                batch_tokens=settings.batch_tokens,
                seed=settings.seed,
                pad_id=self.material.vocabulary.source.pad_id,
                skip=self.place.step * settings.accumulate_steps,
            )
            try:
                train(
                    self.model, self.optimizer, feed, settings,
                    after=lambda update: self._after(update, request), place=self.place,
                )  # fmt: skip
            except Diverged as why:
                self._retreat(why)
            else:
                break
        self._finish()

    def save(self) -> None:
        """Write the checkpoint: from here a killed run goes on."""
        now = time.monotonic()
        self.place.seconds, self._since = self.place.seconds + now - self._since, now
        save_checkpoint(
            self._checkpoint,
            self.model,
            self.optimizer,
            place=self.place,
            data=self.material.identity(),
            mean=self._mean.tensors if self._mean else None,
            losses=torch.stack(self._losses) if self._losses else None,
        )

    def go_back(self) -> Place:
        """Everything as the checkpoint has it."""
        back = load_checkpoint(self._checkpoint, self.model, self.optimizer, data=self.material.identity())
        if self._mean:
            self._mean.go_back(back.mean)
        self._losses = list(back.losses)
        return back.place

    @property
    def _checkpoint(self) -> Path:
        return self.output / "checkpoint.safetensors"

    def _after(self, update: Update, request: Request) -> None:
        if update.skipped:
            self.tell("skipped", f"update {update.step:,}: loss or gradient not finite")
        else:
            self._losses.append(update.loss)
            if self._mean:
                self._mean.follow(self.model, step=update.step)
        if update.pieces > self._pieces:
            self._pieces = update.pieces
            self.tell("memory", f"out of memory at update {update.step:,}: batches now go in {update.pieces} pieces")
        self._watch.updated(update)
        if self.place.skipped_in_a_row == SKIPPED_IN_A_ROW:
            raise Diverged(f"{SKIPPED_IN_A_ROW} updates in a row were not finite")
        is_last = update.step == self.recipe.train.steps
        if is_last and self.place.skipped_in_a_row == update.step:
            raise Diverged(f"all {update.step} updates were not finite")
        paused = update.step % self.recipe.train.validate_every == 0 or is_last
        if paused or request.signal is not None:  # a checkpoint that is sound is replaced by a sound one only
            refuse_broken(self._tensors())
        if paused:
            self._pause(update.rate)
        if request.signal is not None and not self.place.enough:
            if not paused:
                self.save()
            raise Interrupted(
                f"stopped after update {update.step:,} and saved; the same command with --resume goes on",
                signal=request.signal,
            )

    def _pause(self, rate: float) -> None:
        settings, place = self.recipe.train, self.place
        with wearing(self.model, self._mean.tensors) if self._mean else nullcontext():
            pause = self._look(rate)
            if not _is_sound(pause):
                raise Diverged("the validation loss was not finite")
            if self._is_to_be_left(pause):
                self._leave(pause)
        place.enough = 0 < settings.patience <= place.pauses_since_best
        if place.skipped_in_a_row == 0:
            place.retreats = 0
        if settings.average_checkpoints > 1:
            save_snapshot(self._snapshots, self.model, step=place.step)
        self._losses.clear()
        self._note(pause)
        self.save()
        for superfluous in snapshots(self._snapshots, until=place.step)[: -settings.average_checkpoints]:
            superfluous.unlink()
        if place.enough:
            self.tell("enough", f"{settings.patience} pauses without a {settings.early_stopping_metric} better by {TOLERANCE:.1%}; "
                      f"the best, after update {place.best_step:,}, is kept")  # fmt: skip

    def _finish(self) -> None:
        settings = self.recipe.train
        last = snapshots(self._snapshots, until=self.place.step)[-settings.average_checkpoints :]
        if settings.average_checkpoints > 1 and len(last) > 1 and not self.place.finished:
            with wearing(self.model, mean_of(last)):
                pause = replace(self._look(0.0), averaged=len(last))
                if _is_sound(pause) and self._is_to_be_left(pause):
                    self._leave(pause)
            self._note(pause)
        if not (self.output / "config.json").exists():
            raise TrainingError(
                f"no pause had a {settings.early_stopping_metric} that is a finite number, so none is the best and no model is left; "
                f"{self.output}/metrics.jsonl has the pauses; choose another train.stop_on"
            )
        self.place.finished = True
        self.save()

    def _is_to_be_left(self, pause: Pause) -> bool:
        settings = self.recipe.train
        if not settings.patience:
            return True
        goodness = _goodness(pause, settings.early_stopping_metric)
        # A model that begins from a trained one is worth comparing from the first pause on.
        return self.place.judge(goodness, first=0 if settings.init_from else FEWEST_UPDATES, warmup=settings.warmup)

    def _look(self, rate: float) -> Pause:
        """Validate, and ask the judge."""
        place, material = self.place, self.material
        loss = torch.stack(self._losses).mean().item() if self._losses else None
        valid_loss, accuracy, verdict = None, None, Verdict({})
        if material.valid is not None:
            valid_loss, accuracy = validate(self.model, material.valid, batch_tokens=self.recipe.train.batch_tokens)
        sound = valid_loss is None or isfinite(valid_loss)
        if sound and self._judge and (some := material.some_held_out(self.recipe.train.validate_samples)):
            self.model.eval()
            with torch.inference_mode():
                verdict = self._judge(material.bundle(self.model, self.recipe.decode), some)
            self.model.train()
        seconds = place.seconds + time.monotonic() - self._since
        return Pause(
            place.step, loss, rate, valid_loss, accuracy, verdict.scores, seconds, place.skipped,
            samples=verdict.samples,
        )  # fmt: skip

    def _leave(self, pause: Pause) -> None:
        """The bundle, with the weights that the model wears just now."""
        text = card(
            self.output.name, self.model, pause, pairs=len(self.material.train), start=self.recipe.train.init_from
        )
        self.material.bundle(self.model, self.recipe.decode, card=text).save(self.output)
        self._record.outputs(pause.samples)

    def _note(self, pause: Pause) -> None:
        self._record.paused(pause)
        write_report(self.output)
        self._watch.paused(pause)

    def _retreat(self, why: Diverged) -> None:
        at = self.place.step
        self.place = retreat(self.place, why, self.go_back)
        self.save()
        self.tell(
            "rescue",
            f"{why} at update {at:,}: back to update {self.place.step:,}, with {self.place.rate:g} times the rate",
        )

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from (value for state in self.optimizer.state.values() for value in state.values())
        yield from self._mean.tensors.values() if self._mean else ()

    @property
    def _snapshots(self) -> Path:
        return self.output / "snapshots"


def _is_sound(pause: Pause) -> bool:
    return pause.valid_loss is None or isfinite(pause.valid_loss)


def _goodness(pause: Pause, measure: str) -> float:
    if measure == "loss":
        return float("-inf") if pause.valid_loss is None else -pause.valid_loss
    return pause.scores[measure]


def _refuse_patience_without_a_measure(recipe: Recipe, material: Material, judge: Judge | None) -> None:
    settings = recipe.train
    if not settings.patience:
        return
    if material.valid is None:
        raise ConfigError(f"train.patience={settings.patience} needs pairs to validate by; name them in data.valid")
    if settings.early_stopping_metric != "loss" and (judge is None or not settings.validate_samples):
        raise ConfigError(
            f'train.stop_on="{settings.early_stopping_metric}" needs validation pairs to be translated: set train.judged to more '
            'than 0 and, from Python, give `fit` a judge; or use train.stop_on="loss"'
        )
