"""A whole run: a recipe in, a bundle out, with a checkpoint at every validation.

output/recipe.toml               the recipe with every setting
output/data/                     the pairs, encoded; data-report.json lists those dropped
output/plans.jsonl               with a time budget, how many updates it allowed, and when
output/checkpoint.safetensors    everything needed to resume; of a sharded run checkpoints/
output/snapshots/                weights at the last few validations, for their average
output/…                         the bundle, and what log.py writes

A validation writes the checkpoint last. So a run that is killed resumes from a validation that was written completely,
and writes the files of an incomplete one again, with the same contents.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..bundle import Bundle
from ..config import Recipe, TrainConfig
from ..corpus.pair import Pair
from ..data.prepared_data import PreparedData
from ..device import using_threads
from ..errors import Interrupted, TrainingError
from ..nn import Transformer
from ..train.averaging import average_snapshots, remove_snapshots, save_snapshot, swapped_weights, update_ema
from ..train.loop import Update, updates
from ..train.packed_forward import packed_ahead
from ..train.recovery import all_finite, divergence, rollback
from ..train.schedule import learning_rate_at
from ..train.state import MIN_GAIN, TrainState
from ..train.update_plan import UpdatePlan
from ..train.validation import validate
from ..train.workers import Workers
from .best_model import is_best
from .budget import VALIDATION_SHARE, Budget, Stopwatch
from .callback import Evaluation, Evaluator, TrainingCallback, Validation
from .checkpoint import load_checkpoint, save_checkpoint
from .course import Speed, course_since_validation, mean_gradient_norm
from .interrupts import InterruptRequest
from .log import RunLog, read_plans
from .report import write_report
from .run_bundle import make_bundle, make_card
from .sharded_checkpoint import load_sharded, newest_checkpoint, save_sharded

CHECKPOINT, SHARDED_CHECKPOINTS = "checkpoint.safetensors", "checkpoints"

OptimizerFactory = Callable[[Transformer, TrainConfig], Optimizer]

_Result = TypeVar("_Result")


class Run:
    """A model, its training data, and the state of its training.

    Every worker has a `Run`. All make the same updates and take the same decisions; the first one validates, writes
    and reports.
    """

    def __init__(
        self,
        recipe: Recipe,
        output: Path,
        data: PreparedData,
        model: Transformer,
        optimizer: Optimizer,
        state: TrainState,
        *,
        languages: tuple[str, str],
        callback: TrainingCallback,
        evaluate: Evaluator | None,
        log: RunLog,
        workers: Workers,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.recipe, self.output, self.data = recipe, output, data
        self.model, self.optimizer, self.state = model, optimizer, state
        self._languages, self._callback, self._evaluate, self._log = languages, callback, evaluate, log
        self._workers = workers
        self._whole = model  # the model with all its weights, while the first worker validates or saves it
        stopwatch = stopwatch or Stopwatch()
        self._now = stopwatch.now
        self._start = self._now() - state.seconds
        self._speed = Speed()
        self._unrecorded: list[Update] = []  # updates of which the state does not know yet whether they were finite
        self._budget = Budget(recipe.train, stopwatch)
        self._plans = read_plans(output) if workers.rank == 0 and recipe.train.minutes else []

    def message(self, topic: str, text: str) -> None:
        """Pass a line to the callback, and write it to the log."""
        if self._workers.rank == 0:
            self._callback.on_message(topic, text)
            self._log.message(topic, text)

    def train(self, interrupt: InterruptRequest) -> None:
        """Train to the end. After a signal, save and raise `Interrupted`."""
        settings = self.recipe.train
        self._workers.attach(self.model, self.optimizer)
        if self._workers.is_sharded:
            self._load_or_save()
        self._set_plan(self._budget.begin)
        self._callback.on_train_begin(self.state.step, self.state.last_step(settings))
        self._speed.restart()
        while self.state.step < self.state.last_step(settings) and not self.state.stopped_early:
            batches = self.data.batches(
                settings,
                skip=self.state.step * settings.accumulate_steps,
                part=(self._workers.rank, self._workers.count),
            )
            batches = packed_ahead(batches, self.model, settings)
            for update in updates(self.model, self.optimizer, batches, settings, self.state, self._workers):
                if self._workers.rank == 0:
                    self._account(update)
                signal = self._workers.agree(interrupt.signal or 0)
                is_due, saves = self._what_is_due()
                if self.state.plan and self.state.plan.until <= update.step < self.state.plan.steps:
                    self._set_plan(self._budget.plan)
                is_last = update.step == self.state.last_step(settings)
                validates = is_due or is_last
                if validates or saves or signal:
                    self.state.count_outcomes()
                    self._record_outcomes()
                reason = divergence(self.state, is_last=is_last)
                if not reason and (validates or signal) and self._workers.agree(not all_finite(self._tensors())):
                    reason = "the weights were not finite"
                if not reason and validates:
                    reason = self._on_first(partial(self._validate, update.learning_rate))
                    if not reason:
                        self._save_validated()
                if reason:
                    self._rollback(reason)
                if reason or self.state.stopped_early:
                    break
                if saves and not validates:
                    self.save()
                if signal:
                    self._stop(signal, is_saved=validates or saves)
        self._on_first(self._finish)
        self.save()

    def save(self) -> None:
        """Write the checkpoint, from which a killed run resumes; all workers take part."""
        self.state.seconds = self._now() - self._start
        begin = self.state.used_seconds = self._budget.used()
        if self._workers.is_sharded:
            data = self.data.identity()
            save_sharded(self._shards, self.model, self.optimizer, self.state, data=data, workers=self._workers)
        else:
            with self._workers.whole_optimizer(self.optimizer):
                self._workers.from_first(self._write_checkpoint)
        self._budget.count_save(self.state, begin)

    def save_start(self) -> None:
        """Write the checkpoint that the other workers of a run start with; the first worker calls this alone."""
        if not self._workers.is_sharded:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        save_checkpoint(self._checkpoint, self.model, self.optimizer, self.state, data=self.data.identity())

    def restore(self) -> TrainState:
        """Restore model, optimizer and random numbers from the checkpoint; returns its state."""
        data = self.data.identity()
        if (path := newest_checkpoint(self._shards)) and self._workers.is_sharded:
            return load_sharded(path, self.model, self.optimizer, data=data, workers=self._workers)
        return load_checkpoint(self._checkpoint, self.model, self.optimizer, data=data)

    def _load_or_save(self) -> None:
        """Continue from the sharded checkpoint, or write the first one."""
        if newest_checkpoint(self._shards):
            self.state = self.restore()
        else:
            self.save()

    def _on_first(self, act: Callable[[], _Result]) -> _Result:
        """The result of `act`, which only the first worker calls, with all the weights."""
        self._whole = self._workers.whole_model(self.model)
        with using_threads(torch.get_num_threads() * self._workers.count):
            result, scalars = self._workers.from_first(lambda: (act(), self.state.scalars()))
        self._whole = self.model
        for name, value in scalars.items():
            setattr(self.state, name, value)
        return result

    def _set_plan(self, make: Callable[[TrainState], UpdatePlan]) -> None:
        """With a time budget, set the plan that `make` makes in the first worker, for all."""
        if not self.recipe.train.minutes:
            self.state.plan = None
            return
        plan = self._workers.from_first(lambda: make(self.state))
        if self._workers.rank == 0 and self._plans[-1:] != [plan]:
            self._plans.append(plan)
            self._log.plan(plan)
        self.state.plan = plan

    def _what_is_due(self) -> tuple[bool, bool]:
        """Whether to validate after the last update, and whether to save: a time budget may allow only the second."""
        state, settings = self.state, self.recipe.train
        if state.plan is None:
            is_due = state.step % settings.validate_every == 0
            return is_due, is_due
        before, now = (state.plan.position_at(step, settings) for step in (state.step - 1, state.step))
        if now // settings.validate_every == before // settings.validate_every:
            return False, False
        validates, saves = self._workers.from_first(
            lambda: (self._budget.may_validate(state), self._budget.may_save(state))
        )
        return validates, saves

    def _account(self, update: Update) -> None:
        self._speed.count(update.tokens)
        self._budget.count_update(self.state)
        self._unrecorded.append(update)
        self._record_outcomes()
        if self.state.ema and update.outcome:
            is_finite = update.outcome.is_finite if self.state.outcomes else None  # None: known by now
            if is_finite is not None or not update.skipped:
                decay = self.recipe.train.ema_decay
                update_ema(self.state.ema, self.model, decay=decay, step=update.step, is_finite=is_finite)
        if update.out_of_memory:
            self.message(
                "memory",
                f"out of memory at update {update.step:,}: "
                f"each batch is now split into {update.micro_batches} micro-batches",
            )
        self._callback.on_update(update)

    def _record_outcomes(self) -> None:
        """Record the updates of which the state has counted whether they were finite."""
        while len(self._unrecorded) > len(self.state.outcomes):
            update = self._unrecorded.pop(0)
            if update.skipped:
                self.message("skipped", f"update {update.step:,}: loss or gradient not finite")
            else:
                self.state.losses.append(update.loss)
                self.state.gradient_norms.append(update.gradient_norm)

    def _validate(self, learning_rate: float) -> str:
        """Validate, and save all but the checkpoint; or, if the model has diverged, only return the reason."""
        settings, state, begin = self.recipe.train, self.state, self._budget.used()
        with swapped_weights(self._whole, state.ema) if state.ema else nullcontext():
            validation = self._measure(learning_rate)
            if not _is_finite(validation):
                return "the validation loss was not finite"
            if self._is_best(validation):
                self._save_bundle(validation)
        state.stopped_early = 0 < settings.patience <= state.validations_since_best
        if state.skipped_in_a_row == 0:
            state.rollbacks = 0
        if settings.average_checkpoints > 1:
            save_snapshot(self._snapshots, self._whole, step=state.step)
            state.snapshots = [*state.snapshots, state.step][-settings.average_checkpoints :]
        self._log.updates(self._course())
        state.losses.clear()
        state.gradient_norms.clear()
        self._record(validation)
        self._budget.count_validation(state, begin)
        return ""

    def _save_validated(self) -> None:
        """Write the checkpoint of a validation, and remove the snapshots that no later one needs."""
        settings, state = self.recipe.train, self.state
        self.save()
        if self._workers.rank == 0:
            remove_snapshots(self._snapshots, keep=state.snapshots)
        self._speed.restart()
        if state.stopped_early:
            self.message(
                "stopped",
                f"{settings.patience} validations without a {settings.early_stopping_metric} better by "
                f"{MIN_GAIN:.1%}; the best model, after update {state.best_step:,}, is kept",
            )

    def _stop(self, signal: int, *, is_saved: bool) -> None:
        if not is_saved:
            self.save()
        raise Interrupted(
            f"stopped after update {self.state.step:,} and saved; the same command with --resume continues",
            signal=signal,
        )

    def _rollback(self, reason: str) -> None:
        step = self.state.step
        self._unrecorded.clear()
        self.state = rollback(self.state, reason, self.restore)
        self._set_plan(self._budget.begin)
        self._workers.attach(self.model, self.optimizer)
        self.save()
        self._speed.restart()
        self.message(
            "rollback",
            f"{reason} at update {step:,}: back to update {self.state.step:,}, "
            f"with {self.state.learning_rate_factor:g} times the learning rate",
        )

    def _finish(self) -> None:
        steps = self.state.snapshots
        if len(steps) > 1 and not self.state.finished:
            with swapped_weights(self._whole, average_snapshots(self._snapshots, steps)):
                validation = replace(self._measure(0.0), averaged=len(steps))
                if _is_finite(validation) and self._is_best(validation):
                    self._save_bundle(validation)
            self._record(validation)
        if not (self.output / "config.json").exists():
            metric = self.recipe.train.early_stopping_metric
            raise TrainingError(
                f"no validation had a {metric} that is a finite number, so there is no best model to keep; "
                f"{self.output}/metrics.jsonl has the values; choose another train.early_stopping_metric"
            )
        self.state.finished = True

    def _measure(self, learning_rate: float) -> Validation:
        """Validation loss and accuracy, and the scores of the evaluator."""
        state, settings, speed = self.state, self.recipe.train, self._speed.tokens_per_second()
        loss = torch.stack(state.losses).mean().item() if state.losses else None
        valid_loss, accuracy, evaluation = None, None, Evaluation({})
        if self.data.valid is not None:
            valid_loss, accuracy = validate(self._whole, self.data.valid, batch_tokens=settings.batch_tokens)
        is_finite = valid_loss is None or isfinite(valid_loss)
        if is_finite and self._evaluate and (pairs := self.data.validation_samples(settings.validate_samples)):
            self._whole.eval()
            with torch.inference_mode():
                evaluation = self._evaluate(self._bundle(), self._affordable(pairs, self._evaluate))
            self._whole.train()
        seconds = self._now() - self._start
        return Validation(
            state.step, loss, learning_rate, valid_loss, accuracy, evaluation.scores, seconds, state.skipped,
            gradient_norm=mean_gradient_norm(state), tokens_per_second=speed, samples=evaluation.samples,
        )  # fmt: skip

    def _affordable(self, pairs: list[Pair], evaluate: Evaluator) -> list[Pair]:
        """The pairs to translate at a validation: all, or as many as leave a time budget to the updates."""
        state = self.state
        if not self.recipe.train.minutes:
            return pairs
        # A model that has learned little may translate slowly; in the first quarter, the number is chosen again.
        if not state.validation_samples or state.position(self.recipe.train) < self.recipe.train.steps / 4:
            before, now = state.validation_samples, self._budget.count_samples(partial(evaluate, self._bundle()), pairs)
            if now != before:
                state.validation_samples, state.best, state.level = now, None, None  # scores of others do not compare
            if now != before and (count := len(self.data.validation_samples(now))) < len(pairs):
                self.message(
                    "budget",
                    f"each validation translates {count} of {len(pairs)} pairs, so that validations take at most "
                    f"{VALIDATION_SHARE:.0%} of the time",
                )
        return self.data.validation_samples(state.validation_samples)

    def _is_best(self, validation: Validation) -> bool:
        return is_best(validation, self.recipe, self.state, has_valid=self.data.valid is not None)

    def _save_bundle(self, validation: Validation) -> None:
        """Write the bundle, with the model's current weights."""
        card = make_card(self.output.name, self.recipe, self.data, self._whole, validation, self._languages)
        self._bundle(card).save(self.output)
        self._log.write_outputs(validation.samples)

    def _bundle(self, card: str = "") -> Bundle:
        return make_bundle(self.recipe, self.data, self._whole, self._languages, card)

    def _course(self) -> list[dict[str, Any]]:
        d_model, settings = self.model.config.d_model, self.recipe.train
        return course_since_validation(
            self.state, lambda step: learning_rate_at(self._position(step), settings, d_model=d_model)
        )

    def _position(self, step: int) -> float:
        """Where an update was in the schedule, by the plan it was made with."""
        plan = next((plan for plan in reversed(self._plans) if plan.step < step), None)
        return step if plan is None else plan.position_at(step, self.recipe.train)

    def _record(self, validation: Validation) -> None:
        self._log.validation(validation)
        write_report(self.output, running=True)
        self._callback.on_validation(validation)

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from (value for state in self.optimizer.state.values() for value in state.values())
        yield from self.state.ema.values()

    @property
    def _checkpoint(self) -> Path:
        return self.output / CHECKPOINT

    @property
    def _shards(self) -> Path:
        return self.output / SHARDED_CHECKPOINTS

    @property
    def _snapshots(self) -> Path:
        return self.output / "snapshots"


def _is_finite(validation: Validation) -> bool:
    return validation.valid_loss is None or isfinite(validation.valid_loss)
