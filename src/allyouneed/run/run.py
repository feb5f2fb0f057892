"""A whole run: a recipe in, a bundle out, with a checkpoint at every validation.

    output/recipe.toml               the recipe with every setting
    output/data/                     the encoded pairs; data-report.json lists dropped pairs
    output/plans.jsonl               with a time budget, how many updates it allowed, and when
    output/used_seconds.txt          how much of a time budget is used
    output/checkpoint.safetensors    everything needed to resume
    output/snapshots/                weights at the last few validations, for their average
    output/…                         the bundle, and the files that log.py writes

A validation writes the checkpoint last. A killed run therefore resumes from the last complete validation. It repeats
the incomplete one, and writes its files again with the same contents.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..errors import Interrupted
from ..fast.micro_batches import MicroBatches
from ..fast.passes import choose_loss, made_ahead
from ..fast.workers import Workers, workers_here
from ..machine.device import runs_ahead, using_threads
from ..machine.interrupts import InterruptRequest
from ..train.averaging import update_ema
from ..train.gradients import BatchLoss, add_gradients
from ..train.loop import Update, updates
from ..train.schedule import learning_rate_at
from .budget import Budget
from .checkpoint import CHECKPOINT_FILE, load_checkpoint, save_checkpoint
from .log import RunLog, Speed, course_since_validation, read_plans
from .setup import Setup
from .state import MIN_GAIN, Outcome, TrainState, UpdatePlan, all_finite, divergence, rollback
from .validator import Validator
from .worker_count import CoreChoice

_Result = TypeVar("_Result")


class Due(NamedTuple):
    """What is due after an update: validate, save, stop for a signal (0: none), change the number of cores."""

    validation: bool
    checkpoint: bool
    signal: int
    is_last: bool
    cores: int = 0  # cores with which the run continues; 0: no change


class Run:
    """A model, its training data, and the state of its training.

    Every worker has a `Run`. All workers make the same updates and the same decisions. Only the first worker validates,
    writes and reports.
    """

    def __init__(self, setup: Setup, state: TrainState, log: RunLog, *, choice: CoreChoice | None = None) -> None:
        self.settings = setup.recipe.train
        self.data = setup.data
        self.state = state
        self.model = setup.model
        self.optimizer = setup.optimizer
        self._runs_ahead = runs_ahead(next(setup.model.parameters()).device)
        self._callback = setup.hooks.callback
        self._log = log
        self._workers = Workers()
        self._choice = choice
        self._window = setup.window
        self._loss: BatchLoss | None = None
        self._now = setup.hooks.stopwatch.now
        self._start = self._now() - state.seconds
        self._speed, self._update_began = Speed(), self._now()
        self._unrecorded: list[tuple[Update, Outcome]] = []  # updates that are not yet counted in the state
        self._budget = Budget(self.settings, setup.hooks.stopwatch, has_test=setup.has_test)
        self._checkpoint = setup.output / CHECKPOINT_FILE
        self._validator = Validator(setup, log, self._budget, self._seconds)
        self._plans = read_plans(setup.output) if self.settings.minutes else []

    def message(self, topic: str, text: str) -> None:
        """Pass a message to the callback, and write it to the log."""
        if self._workers.rank == 0:
            self._callback.on_message(topic, text)
            self._log.message(topic, text)

    def train(self, workers: Workers, interrupt: InterruptRequest) -> int:
        """Train to the end, or until the number of cores should change.

        Returns 0 at the end, or the new number of cores.

        After a signal, saves the run and raises `Interrupted`.
        """
        self._begin(workers)
        while not self._is_finished():
            for update in self._updates():
                # Also waits until every worker has updated its weights.
                signal = self._workers.agree(interrupt.signal)
                self._count(update)
                due = self._due(signal)
                reason = self._divergence(due)
                if not reason and due.validation:
                    reason = self._validate(update)
                if reason:
                    self._rollback(reason)
                elif due.validation or due.checkpoint or due.signal or due.cores:
                    self.save()
                    self._after_save(due)
                if reason or self._is_finished():
                    break
                if due.signal:
                    self._stop(due.signal)
                if due.cores:
                    workers.detach()
                    return due.cores
        self._on_first(lambda: self._validator.finish(self.model, self.state))
        self.save()
        if signal := self._workers.agree(interrupt.signal):
            self._stop(signal)
        return 0

    def save(self) -> None:
        """Write the checkpoint from which a killed run resumes. All workers take part."""
        self.state.seconds = self._seconds()
        begin = self.state.used_seconds = self._budget.used()
        with self._workers.whole_optimizer(self.optimizer):
            self._workers.from_first(
                lambda: save_checkpoint(
                    self._checkpoint, self.model, self.optimizer, self.state, data=self.data.identity()
                )
            )
        self._budget.count_save(self.state, begin)

    def _begin(self, workers: Workers) -> None:
        self._workers = workers
        is_first = self._loss is None
        if self._loss is None:
            self._loss, reason = choose_loss(self.model, self.settings)
            if reason:
                self.message("model", reason)
                self._validator.expect_slower_engines()
        else:  # start from the checkpoint, like the other workers
            self.state = load_checkpoint(self._checkpoint, self.model, self.optimizer, data=self.data.identity())
        workers.attach(self.model, self.optimizer)
        self._micro_batches = MicroBatches(partial(add_gradients, loss_of=self._loss), self.state.micro_batches)
        self._set_plan(self._budget.begin)
        if is_first:
            if workers.rank == 0 and self.state.step == 0:
                self._validator.film(self.model, self.state, None)
            self._callback.on_train_begin(self.state.step, self.state.last_step(self.settings))
        self._restart_clocks()

    def _restart_clocks(self) -> None:
        """Restart the clocks, so that validations and checkpoints do not count as time of updates."""
        self._speed.restart()
        self._update_began = self._now()

    def _is_finished(self) -> bool:
        return self.state.step >= self.state.last_step(self.settings) or self.state.stopped_early

    def _updates(self) -> Iterator[Update]:
        """Yield the updates after the last finished update, endlessly."""
        workers = self._workers
        first = self.state.step + 1
        assert self._loss is not None
        batches = self.data.batches(
            self.settings, skip=self.state.step * self.settings.accumulate_steps, part=(workers.rank, workers.count)
        )
        return updates(
            self.model,
            self.optimizer,
            made_ahead(batches, self._loss, self.model, self.settings),
            self.settings,
            first=first,
            learning_rate=self._learning_rate,
            gradients=workers.gradients(self._micro_batches, first=first),
        )

    def _learning_rate(self, step: int) -> float:
        by_schedule = learning_rate_at(
            self.state.position(self.settings, step), self.settings, d_model=self.model.config.d_model
        )
        return self.state.learning_rate_factor * by_schedule

    def _count(self, update: Update) -> None:
        """Count an update and report it. On a GPU, the program reads whether it was finite one update later."""
        state = self.state
        outcome = Outcome(update.is_finite)
        state.step = update.step
        state.outcomes.append(outcome)
        state.count_outcomes(later=1 if self._runs_ahead else 0)
        if self._workers.rank:
            return
        tokens = update.tokens * self._workers.count
        now = self._now()
        self._speed.count(tokens)
        if self._choice:
            self._choice.count(tokens, now - self._update_began)
        self._update_began = now
        self._budget.count_update(state)
        self._unrecorded.append((update, outcome))
        self._record_outcomes()
        if state.ema:
            update_ema(
                state.ema, self.model, decay=self.settings.ema_decay, step=update.step, is_finite=update.is_finite
            )
        if self._micro_batches.count > state.micro_batches:
            state.micro_batches = self._micro_batches.count
            self.message(
                "memory",
                f"out of memory at update {update.step:,}: "
                f"each batch is now split into {state.micro_batches} micro-batches",
            )
        is_last = state.step >= state.last_step(self.settings)
        self._validator.film(self.model, state, update, is_last=is_last)
        self._callback.on_update(update, state.last_step(self.settings))

    def _record_outcomes(self) -> None:
        """Record loss and gradient norm of the updates whose outcome the state has counted; report skipped updates."""
        while len(self._unrecorded) > len(self.state.outcomes):
            update, outcome = self._unrecorded.pop(0)
            if outcome.read():
                self.state.losses.append(update.loss)
                self.state.gradient_norms.append(update.gradient_norm)
            else:
                self.message("skipped", f"update {update.step:,}: loss or gradient not finite")

    def _due(self, signal: int) -> Due:
        """Return what is due after the last update. With a time budget, a validation may become a mere checkpoint."""
        state = self.state
        settings = self.settings
        budget = self._budget
        before, now = (state.position(settings, step) for step in (state.step - 1, state.step))
        validates = saves = now // settings.validate_every > before // settings.validate_every
        if validates and state.plan:
            validates, saves = self._workers.from_first(lambda: (budget.may_validate(state), budget.may_save(state)))
        if state.plan and state.plan.until <= state.step < state.plan.steps:
            self._set_plan(budget.plan)
        is_last = state.step >= state.last_step(settings)
        is_choosing = self._window and state.step % self._window == 0 and not is_last
        cores = self._workers.from_first(self._choose_cores) if is_choosing else 0
        return Due(validates or is_last, saves, signal, is_last, cores)

    def _choose_cores(self) -> int:
        assert self._choice is not None
        return self._choice.choose(self.state, self.state.last_step(self.settings) - self.state.step)

    def _divergence(self, due: Due) -> str:
        """Say why the run has diverged; "" if it has not. Checks the weights before they are validated or saved."""
        checks = due.validation or due.checkpoint or due.signal or due.cores
        if checks:
            self.state.count_outcomes()
            self._record_outcomes()
        reason = divergence(self.state, is_last=due.is_last)
        if checks and not reason and self._workers.agree(not all_finite(self._tensors())):
            return "the weights were not finite"
        return reason

    def _validate(self, update: Update) -> str:
        """Validate, and save everything except the checkpoint. If the model has diverged, only return the reason."""
        return self._on_first(
            lambda: self._validator.validate(
                self.model, self.state, learning_rate=update.learning_rate, speed=self._speed.tokens_per_second(),
                course=self._course(),
            )
        )  # fmt: skip

    def _after_save(self, due: Due) -> None:
        """Remove the snapshots that no later validation needs. Call this after a validation's checkpoint is written."""
        self._update_began = self._now()
        if not due.validation:
            return
        settings = self.settings
        state = self.state
        if self._workers.rank == 0:
            self._validator.remove_old_snapshots(state)
        self._restart_clocks()
        if state.stopped_early:
            self.message(
                "stopped",
                f"{settings.patience} validations without a {settings.early_stopping_metric} better by "
                f"{MIN_GAIN:.1%}; the best model, after update {state.best_step:,}, is kept",
            )

    def _seconds(self) -> float:
        """Return the training time so far in seconds, including the time before a resume."""
        return self._now() - self._start

    def _on_first(self, act: Callable[[], _Result]) -> _Result:
        """Call `act` in the first worker only, with the threads of all workers; return its result in every worker."""
        with using_threads(torch.get_num_threads() * workers_here(self._workers.count)):
            result, scalars = self._workers.from_first(lambda: (act(), self.state.scalars()))
        self.state = replace(self.state, **scalars)
        return result

    def _set_plan(self, make: Callable[[TrainState], UpdatePlan]) -> None:
        """If there is a time budget, let the first worker make a plan with `make`, and use it in all workers."""
        if not self.settings.minutes:
            self.state.plan = None
            return
        plan = self._workers.from_first(lambda: make(self.state))
        if self._workers.rank == 0 and self._plans[-1:] != [plan]:
            self._plans.append(plan)
            self._log.plan(plan)
        self.state.plan = plan

    def _stop(self, signal: int) -> None:
        raise Interrupted(
            f"stopped after update {self.state.step:,} and saved; resuming continues from there", signal=signal
        ).mended_by("--resume")

    def _rollback(self, reason: str) -> None:
        step = self.state.step
        self._unrecorded.clear()
        self.state = rollback(
            self.state, reason,
            lambda: load_checkpoint(self._checkpoint, self.model, self.optimizer, data=self.data.identity()),
        )  # fmt: skip
        self._set_plan(self._budget.begin)
        self._workers.attach(self.model, self.optimizer)
        self.save()
        self._restart_clocks()
        self.message(
            "rollback",
            f"{reason} at update {step:,}: back to update {self.state.step:,}, "
            f"with {self.state.learning_rate_factor:g} times the learning rate",
        )

    def _course(self) -> list[dict[str, Any]]:
        d_model = self.model.config.d_model
        settings = self.settings
        return course_since_validation(
            self.state, lambda step: learning_rate_at(self._position(step), settings, d_model=d_model)
        )

    def _position(self, step: int) -> float:
        """Return the position of an update in the schedule, by the plan that was valid when the update was made."""
        plan = next((plan for plan in reversed(self._plans) if plan.step < step), None)
        return step if plan is None else plan.position_at(step, self.settings)

    def _tensors(self) -> Iterator[Tensor]:
        yield from self.model.parameters()
        yield from (value for state in self.optimizer.state.values() for value in state.values())
        yield from self.state.ema.values()
