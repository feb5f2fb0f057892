"""Keep the state of a run besides its model and optimizer, and return a run to its last checkpoint."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from math import ceil, isfinite, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..config import TrainConfig
from ..errors import ConfigError, TrainingError
from ..machine.device import move


class Outcome:
    """The outcome of an update: `is_finite`, a bool on the device, and a copy that is on its way to the CPU."""

    def __init__(self, is_finite: Tensor) -> None:
        self.is_finite = is_finite
        self._copied: torch.cuda.Event | None = None
        self._value = move(is_finite, torch.device("cpu"))
        if is_finite.is_cuda:
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record()

    def read(self) -> bool:
        """Return True if the update was finite. Waits until the update is done."""
        if self._copied is not None:
            self._copied.synchronize()
        return bool(self._value)


class UpdatePlan(NamedTuple):
    """A plan of a run with a time budget, made after update `step`: `steps` updates in all.

    `position` is the place of update `step` in the schedule, counted in updates of `TrainConfig.steps`; the remaining
    updates are spaced evenly over the rest of the schedule. After update `until` a new plan is made.
    `seconds_per_update` is the recent speed, or 0 if it is not measured yet. `seconds` is the part of the budget used
    up to `step`, and `updating` the part spent in updates.
    """

    step: int
    position: float
    steps: int
    until: int
    seconds_per_update: float = 0.0
    seconds: float = 0.0
    updating: float = 0.0

    def position_at(self, step: int, config: TrainConfig) -> float:
        """Return the position of a later update in the schedule. The last update is at `config.steps`."""
        done = step - self.step
        rest = max(1, self.steps - self.step)
        return self.position + (config.steps - self.position) * done / rest


class CoreTrial(NamedTuple):
    """A trial of another number of cores: the previous number and its speed, for comparison, and when the trial ends.

    The speed is in tokens per second. The trial ends after window number `until`.
    """

    cores: int
    speed: float
    until: int


MIN_UPDATES = 100  # of a new model; before that its score means little
MAX_SKIPPED_IN_A_ROW = 5  # non-finite updates before a run is rolled back to its last checkpoint
MIN_GAIN = 0.001  # smallest relative gain in the metric that resets patience


@dataclass(slots=True)
class TrainState:
    """The number of updates done (`step`, which is also the position in the data), and other counts."""

    step: int = 0
    seconds: float = 0.0  # spent in training
    learning_rate_factor: float = 1.0  # multiplies the schedule's learning rate; halved at each rollback
    cores: int = 0  # cores for the following updates (worker_count.py); 0: not chosen yet
    trial: CoreTrial | None = None  # if another number of cores is being tried
    trial_at: int = 0  # the window at which another number of cores is tried; 0: not planned yet
    tries_fewer: bool = False  # whether that trial uses fewer cores
    # Results of trials: cores, and how much faster they are than fewer.
    gains: list[tuple[int, float]] = field(default_factory=list)
    micro_batches: int = 1  # parts into which a batch is split to fit into memory
    skipped: int = 0  # updates that were not finite
    skipped_in_a_row: int = 0
    rollbacks: int = 0  # since the last validation
    best: float | None = None  # highest value of `early_stopping_metric`; only with patience
    best_loss: float | None = None  # validation loss of the model that is kept
    best_step: int = 0
    level: float | None = None  # value of `early_stopping_metric` when patience was last reset
    validations_since_best: int = 0
    stopped_early: bool = False  # patience has run out
    finished: bool = False
    plan: UpdatePlan | None = None  # this and the following fields are only used with a time budget
    minutes: float = 0.0  # the budget that the plan is for
    used_seconds: float = 0.0  # of the budget, up to the last checkpoint
    other_seconds: float = 0.0  # the part of `used_seconds` not spent in updates
    validating_seconds: float = 0.0  # in all validations
    validation_seconds: float = 0.0  # in the last validation
    validation_samples: int = 0  # pairs to translate at each validation; 0: not chosen yet
    snapshots: list[int] = field(default_factory=list)  # updates whose weights are kept, for the average at the end
    losses: list[Tensor] = field(default_factory=list)  # for the finite updates since the last validation
    gradient_norms: list[Tensor] = field(default_factory=list)  # for the same updates, before clipping
    outcomes: list[Outcome] = field(default_factory=list)  # of updates that are done but not counted yet
    ema: dict[str, Tensor] = field(default_factory=dict)  # exponential moving average of the weights, if used

    def __post_init__(self) -> None:
        if self.plan is not None:
            self.plan = UpdatePlan(*self.plan)  # JSON gives a list
        if self.trial is not None:
            self.trial = CoreTrial(*self.trial)

    def continue_with(self, config: TrainConfig) -> None:
        """Take over the settings of the continued run. More updates, minutes or patience give it more work to do.

        Refuses fewer updates or minutes than the run has already had.
        """
        self.refuse_less(config)
        self.check_patience(config)
        has_budget = config.minutes and self.plan
        is_complete = config.minutes == self.minutes if has_budget else self.step >= config.steps
        self.finished = self.finished and (self.stopped_early or is_complete)

    def last_step(self, config: TrainConfig) -> int:
        """Return the number of the last update, as planned now."""
        return config.steps if self.plan is None else self.plan.steps

    def position(self, config: TrainConfig, step: int | None = None) -> float:
        """Return the position of an update in the schedule, by default of the last one.

        Without a time budget the position is the number of the update.
        """
        step = self.step if step is None else step
        return step if self.plan is None else self.plan.position_at(step, config)

    def scalars(self) -> dict[str, Any]:
        """Return everything except the tensors, for JSON."""
        tensors = ("losses", "gradient_norms", "outcomes", "ema")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in tensors}

    def count_outcomes(self, *, later: int = 0) -> None:
        """Count how many updates were skipped, except among the last `later`. Stops at five skipped in a row."""
        while len(self.outcomes) > later:
            is_finite = self.outcomes.pop(0).read()
            self.skipped += not is_finite
            self.skipped_in_a_row = 0 if is_finite else self.skipped_in_a_row + 1
            if self.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW:
                return

    def update_best(
        self,
        value: float,
        *,
        loss: float | None = None,
        first: int = 0,
        in_warmup: bool = False,
        tokens: int = 0,
    ) -> bool:
        """Return True if the model of this validation is to be kept: the highest value or, among equals, lowest `loss`.

        If the values are percentages of a number of `tokens`, the latest model within one standard error of the highest
        value is kept (Breiman et al., 1984): smaller differences may be chance, and later models have learned more.
        Before update `first`, every model is kept. Patience is reset during warmup, and by a gain of more than
        `MIN_GAIN`. A model whose value is not finite is never kept.
        """
        is_known = self.step >= first
        is_kept = self._is_kept(value, loss, tokens)
        if is_kept:
            highest = value if self.best is None else max(value, self.best)
            self.best = highest if is_known else None
            self.best_loss = loss
            self.best_step = self.step
        resets = not is_known or in_warmup or self.level is None or value - self.level > MIN_GAIN * abs(self.level)
        if isfinite(value) and resets:
            self.level = value if is_known else None
            self.validations_since_best = 0
        else:
            self.validations_since_best += 1
        return is_kept

    def _is_kept(self, value: float, loss: float | None, tokens: int) -> bool:
        if not isfinite(value):
            return False
        if self.best is None or value > self.best:
            return True
        if tokens:
            return value >= self.best - sqrt(self.best * (100 - self.best) / tokens)
        return value == self.best and loss is not None and self.best_loss is not None and loss < self.best_loss

    def refuse_less(self, config: TrainConfig) -> None:
        """Refuse fewer updates, or a smaller time budget, than the run has already had."""
        if not config.minutes and config.steps < self.step:  # a run whose budget was raised may go beyond this number
            raise ConfigError(
                f"train.steps={config.steps} is less than the {self.step} updates already done"
            ).mended_by(f"train.steps={2 * self.step}")
        if config.minutes not in (0, self.minutes) and 60 * config.minutes_each < self.used_seconds:
            used = config.rounds * self.used_seconds / 60
            raise ConfigError(
                f"train.minutes={config.minutes:g} is less than the {used:.2g} minutes already used"
            ).mended_by("--minutes", f"{ceil(2 * used)}")

    def check_patience(self, config: TrainConfig) -> None:
        """Record whether patience has run out. A run that is resumed with more patience continues."""
        self.stopped_early = 0 < config.patience <= self.validations_since_best


MAX_ROLLBACKS = 5  # in a row, before the run ends


def divergence(state: TrainState, *, is_last: bool) -> str:
    """Say why the last updates show that the run has diverged; "" if they do not."""
    if state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW:
        return f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite"
    if is_last and state.skipped_in_a_row == state.step:
        return f"all {state.step} updates were not finite"
    return ""


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Return True if every number in some tensors on one device is finite. Waits for a GPU only once."""
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())


def rollback(state: TrainState, reason: str, restore: Callable[[], TrainState]) -> TrainState:
    """Return the state of the last checkpoint with half the learning rate, after a run has diverged for `reason`.

    Refuses after `MAX_ROLLBACKS` rollbacks in a row that did not help.
    """
    if state.rollbacks == MAX_ROLLBACKS:
        raise TrainingError(
            f"{reason} around update {state.step:,}, even with {state.learning_rate_factor:g} times the learning rate; "
            "lower train.learning_rate, lengthen train.warmup or set train.clip_norm=1, and start again"
        )
    restored = restore()
    restored.learning_rate_factor = state.learning_rate_factor / 2
    restored.rollbacks = state.rollbacks + 1
    restored.skipped = state.skipped
    restored.skipped_in_a_row = 0
    restored.micro_batches = state.micro_batches
    return restored
