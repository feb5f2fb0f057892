"""How many cores train a run: tried out while it goes on, by the time that its updates take.

As many processes as cores share every batch, with one thread each: threads of one product wait for each other, and keep
their cores busy while they do. Where only one process can train, it has as many threads instead.

A run begins with one core. After a number of updates that depends on the size of an update alone, it tries twice as
many cores, and keeps them if they are faster; after a failure it tries again when four times as many updates are done,
or when the speed has changed. Each change follows a checkpoint that has it, so a run that is resumed there continues
with the same number, and to the bit as if it had never stopped.
"""

import os
from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import torch

from ..config import TrainConfig
from ..device import available_cores
from ..errors import ConfigError
from ..nn import Transformer
from .processes import started_by_torchrun
from .state import CoreTrial, TrainState

# More processes are worth a try if each part of an update has at least so many parameters × tokens. The part of its
# time that does not depend on the number of tokens, about 3 ms with d_model 64, is then at most a third.
MIN_UPDATE = 4e7
# Speeds are compared over windows of so many parameters × tokens, a few seconds of one core, or FEWEST updates.
WINDOW, FEWEST = 2e10, 16
FIRST, SPACING = 4, 4  # the window at which the first trial begins; each further one SPACING times as late
STARTING, TRYING = 2, 2  # windows in which processes start; and of a trial: one to warm up, one that counts
GAIN = 1.05  # more cores are kept if they are so much faster
CHANGED = 0.7  # of the speed, from which on the number of cores is tried again; or its inverse
WORTH_SECONDS, WORTH_WINDOWS = 30.0, 8  # the least that a run must still take for a trial to pay


class Cores(NamedTuple):
    """The cores that may train a run: `first` at its start, `most` at most; and why, if that needs saying.

    `threads` is the number that all processes share; 0: each has one. `by_threads`: one process trains, with a thread
    for each core.
    """

    first: int
    most: int
    threads: int
    by_threads: bool
    reason: str = ""

    def resumed(self, state: TrainState) -> int:
        """The cores of a run that starts, or that goes on with those of its state; noted there."""
        cores = min(state.cores or self.first, self.most) if self.first < self.most else self.first
        if cores != state.cores:
            state.cores, state.trial = cores, None
        return cores

    def processes(self, cores: int) -> int:
        """How many processes train on so many cores."""
        return 1 if self.by_threads else cores

    def threads_each(self, cores: int, *, processes_here: int) -> int:
        """How many threads each process has."""
        return cores if self.by_threads else max(1, self.threads // processes_here)


def can_divide(*, on_cpu: bool, is_standard: bool) -> bool:
    """Whether a run can start processes that share it; `is_standard`: `build_optimizer` makes its optimizer."""
    return on_cpu and is_standard and hasattr(os, "memfd_create")


def most_workers(config: TrainConfig, *, can_divide: bool) -> int:
    """How many workers a run on a CPU can have, before its model is known."""
    if started_by_torchrun():
        return int(os.environ["WORLD_SIZE"])
    if config.workers != "auto":
        return config.workers
    return config.threads or available_cores() if can_divide else 1


def choose_cores(config: TrainConfig, model: Transformer, *, can_divide: bool) -> Cores:
    """The cores that may train a run. Refuses a number of workers that this process cannot start."""
    if started_by_torchrun():
        count = int(os.environ["WORLD_SIZE"])
        return Cores(count, count, config.threads, False, f"{count} processes of torchrun share every batch")
    if config.workers != "auto":
        if config.workers > 1 and not can_divide:
            raise ConfigError(
                f"train.workers={config.workers} needs Linux, a CPU as device and the built-in optimizers; "
                "set train.workers=1, or start the workers with torchrun"
            )
        return Cores(config.workers, config.workers, config.threads, False, f"{config.workers}, as set")
    if next(model.parameters()).device.type != "cpu":
        return Cores(1, 1, torch.get_num_threads(), False)
    if not can_divide and config.threads:
        return Cores(config.threads, config.threads, config.threads, True)
    most = int(update_size(config, model) / MIN_UPDATE)
    return Cores(1, max(1, min(config.threads or available_cores(), most)), config.threads, not can_divide)


def update_size(config: TrainConfig, model: Transformer) -> float:
    """The parameters × tokens of an update."""
    return float(model.parameter_count()) * config.batch_tokens * config.accumulate_steps


def window_size(config: TrainConfig, model: Transformer) -> int:
    """How many updates a window has; the same on every machine."""
    return max(FEWEST, ceil(WINDOW / update_size(config, model)))


class CoreChoice:
    """Tries other numbers of cores between the windows of a run, up to `most`; the trial that goes on is in its state.

    `start` starts the processes for a number of cores, ahead of the trial; `can_start` waits for them, and returns
    False if they have failed. `say` takes a line about what was found.
    """

    def __init__(
        self,
        most: int,
        window: int,
        *,
        start: Callable[[int], None],
        can_start: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self._most, self._window = most, window
        self._start, self._can_start, self._say = start, can_start, say
        self._tokens, self._seconds, self._updates = 0.0, 0.0, 0  # of this window
        self._speed = 0.0  # tokens a second with the present cores; 0: not measured yet
        self._is_started = False  # the processes of the next trial

    def count(self, tokens: int, seconds: float) -> None:
        """Count an update, and the time that it took."""
        self._tokens, self._seconds, self._updates = self._tokens + tokens, self._seconds + seconds, self._updates + 1

    def choose(self, state: TrainState, updates_left: int) -> int:
        """The cores with which the run goes on after a window, noted in `state`; 0: with those that it has."""
        window, speed = state.step // self._window, self._tokens / max(self._seconds, 1e-9)
        seconds_left = updates_left * self._seconds / max(1, self._updates)
        self._tokens, self._seconds, self._updates = 0.0, 0.0, 0
        is_worth_it = seconds_left > WORTH_SECONDS and updates_left > WORTH_WINDOWS * self._window
        if state.trial:
            return self._judge(state, state.trial, window, speed) if window >= state.trial.until else 0
        before, self._speed = self._speed, max(self._speed, speed)
        if before and not CHANGED < speed / before < 1 / CHANGED:
            self._speed, state.trial_at = speed, window + STARTING
            if speed < before and state.cores > 1 and is_worth_it:
                return self._begin(state, window, state.cores // 2)
        state.trial_at = state.trial_at or FIRST
        if not is_worth_it or state.cores >= self._most or window < state.trial_at - STARTING:
            return 0
        more = min(2 * state.cores, self._most)
        if not self._is_started:
            self._start(more)
            self._is_started = True
        if window < state.trial_at:
            return 0
        self._is_started = False
        if not self._can_start():  # they have failed once, and are not tried again
            self._most = state.cores
            self._say(f"the processes for {more} cores could not start, for the error above; {state.cores} train on")
            return 0
        return self._begin(state, window, more)

    def _begin(self, state: TrainState, window: int, cores: int) -> int:
        state.trial, state.cores = CoreTrial(state.cores, self._speed, window + TRYING), cores
        return cores

    def _judge(self, state: TrainState, trial: CoreTrial, window: int, speed: float) -> int:
        """End a trial: keep its cores, or go back."""
        (fewer, slow), (more, fast) = sorted([(trial.cores, trial.speed), (state.cores, speed)])
        tried, chosen = state.cores, more if fast > GAIN * slow else fewer
        state.trial, state.cores = None, chosen
        self._speed = fast if chosen == more else slow
        self._say(
            f"on {more} cores {fast / max(slow, 1e-9):.2f} times as fast as on {fewer}: {chosen} train from now on"
        )
        state.trial_at = window + STARTING if chosen == tried == more else _later_trial(window)
        return 0 if chosen == tried else chosen


def _later_trial(window: int) -> int:
    """The window of the trial that follows one without a gain: the first after `window` of FIRST, FIRST · SPACING, …"""
    later = FIRST
    while later <= window:
        later *= SPACING
    return later
