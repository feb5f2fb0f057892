"""A whole run: a recipe in, a bundle out, with a checkpoint at every validation.

output/recipe.toml               the recipe with every setting
output/data/                     the pairs, encoded; data-report.json lists those dropped
output/plans.jsonl               with a time budget, how many updates it allowed, and when
output/used_seconds.txt          how much of a time budget is used
output/checkpoint.safetensors    everything needed to resume
output/snapshots/                weights at the last few validations, for their average
output/…                         the bundle, and what log.py writes

A validation writes the checkpoint last. So a run that is killed resumes from a validation that was written completely,
and writes the files of an incomplete one again, with the same contents.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..config import Recipe, TrainConfig
from ..data.prepared_data import PreparedData
from ..device import using_threads
from ..errors import Interrupted
from ..nn import Transformer
from ..train.averaging import update_ema
from ..train.loop import Update, updates
from ..train.packed_forward import packed_ahead
from ..train.recovery import all_finite, divergence, rollback
from ..train.schedule import learning_rate_at
from ..train.state import MIN_GAIN, TrainState
from ..train.update_plan import UpdatePlan
from ..train.workers import Workers, workers_here
from .budget import Budget, Stopwatch
from .callback import Evaluator, TrainingCallback
from .checkpoint import CHECKPOINT_FILE, load_checkpoint, save_checkpoint
from .course import Speed, course_since_validation
from .interrupts import InterruptRequest
from .log import RunLog, read_plans
from .validator import Validator

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
        self.recipe, self.data = recipe, data
        self.model, self.optimizer, self.state = model, optimizer, state
        self._callback, self._log, self._workers = callback, log, workers
        stopwatch = stopwatch or Stopwatch()
        self._now = stopwatch.now
        self._start = self._now() - state.seconds
        self._speed = Speed()
        self._unrecorded: list[Update] = []  # updates of which the state does not know yet whether they were finite
        self._budget, self._checkpoint = Budget(recipe.train, stopwatch), output / CHECKPOINT_FILE
        self._validator = Validator(
            recipe, output, data, languages=languages, callback=callback, evaluate=evaluate, log=log,
            budget=self._budget, seconds=self._seconds,
        )  # fmt: skip
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
                checks = bool(validates or saves or signal)
                if checks:
                    self.state.count_outcomes()
                    self._record_outcomes()
                reason = divergence(self.state, is_last=is_last)
                if checks and not reason and self._workers.agree(not all_finite(self._tensors())):
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
        self._on_first(lambda: self._validator.finish(self.model, self.state))
        self.save()
        if signal := self._workers.agree(interrupt.signal or 0):
            self._stop(signal, is_saved=True)

    def save(self) -> None:
        """Write the checkpoint, from which a killed run resumes; all workers take part."""
        self.state.seconds = self._seconds()
        begin = self.state.used_seconds = self._budget.used()
        with self._workers.whole_optimizer(self.optimizer):
            self._workers.from_first(
                lambda: save_checkpoint(
                    self._checkpoint, self.model, self.optimizer, self.state, data=self.data.identity()
                )
            )
        self._budget.count_save(self.state, begin)

    def _restore(self) -> TrainState:
        return load_checkpoint(self._checkpoint, self.model, self.optimizer, data=self.data.identity())

    def _seconds(self) -> float:
        """The training time so far, that before a resume included."""
        return self._now() - self._start

    def _on_first(self, act: Callable[[], _Result]) -> _Result:
        """The result of `act`, which only the first worker calls."""
        with using_threads(torch.get_num_threads() * workers_here(self._workers.count)):
            result, scalars = self._workers.from_first(lambda: (act(), self.state.scalars()))
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
        return self._workers.from_first(lambda: (self._budget.may_validate(state), self._budget.may_save(state)))

    def _account(self, update: Update) -> None:
        self._speed.count(update.tokens)
        self._budget.count_update(self.state)
        self._unrecorded.append(update)
        self._record_outcomes()
        if self.state.ema:
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
        return self._validator.validate(
            self.model, self.state, learning_rate=learning_rate, speed=self._speed.tokens_per_second(),
            course=self._course(),
        )  # fmt: skip

    def _save_validated(self) -> None:
        """Write the checkpoint of a validation, and remove the snapshots that no later one needs."""
        settings, state = self.recipe.train, self.state
        self.save()
        if self._workers.rank == 0:
            self._validator.remove_old_snapshots(state)
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
        self.state = rollback(self.state, reason, self._restore)
        self._set_plan(self._budget.begin)
        self._workers.attach(self.model, self.optimizer)
        self.save()
        self._speed.restart()
        self.message(
            "rollback",
            f"{reason} at update {step:,}: back to update {self.state.step:,}, "
            f"with {self.state.learning_rate_factor:g} times the learning rate",
        )

    def _course(self) -> list[dict[str, Any]]:
        d_model, settings = self.model.config.d_model, self.recipe.train
        return course_since_validation(
            self.state, lambda step: learning_rate_at(self._position(step), settings, d_model=d_model)
        )

    def _position(self, step: int) -> float:
        """Where an update was in the schedule, by the plan it was made with."""
        plan = next((plan for plan in reversed(self._plans) if plan.step < step), None)
        return step if plan is None else plan.position_at(step, self.recipe.train)

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from (value for state in self.optimizer.state.values() for value in state.values())
        yield from self.state.ema.values()
