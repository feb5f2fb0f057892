"""The number of cores that train a run, found by trying other numbers while the run continues.

One process per core shares every batch, with one thread each. Threads that share one product would wait for each other
and keep their cores busy meanwhile. If only one process can train, it uses several threads instead.

A run begins with one core. After a number of updates that depends only on the size of an update, it tries twice as many
cores, and keeps them if they are faster. A single result may be chance, so the run repeats the comparison, in either
direction, after three times as many updates or when the speed has changed. A checkpoint records each change, so a
resumed run continues with the same number of cores, exactly as if it had never stopped.
"""

import os
import sys
from collections.abc import Callable
from math import ceil
from statistics import median
from typing import NamedTuple

import torch

from ..config import TrainConfig
from ..errors import ConfigError
from ..machine.device import available_cores
from ..nn import Transformer
from .processes import started_by_torchrun
from .state import CoreTrial, TrainState

# More processes are worth a try if each part of an update has at least this many parameters × tokens. The time that
# does not depend on the number of tokens, about 3 ms with d_model 64, is then at most a third.
MIN_UPDATE = 4e7
# Speeds are compared over windows of this many parameters × tokens (a few seconds of one core), or FEWEST updates.
WINDOW = 2e10
FEWEST = 16
FIRST, SPACING = 4, 3  # the window at which the first trial begins; each further trial is SPACING times as late
# Windows in which processes start; windows of a trial, of which the first warms up and three count.
STARTING, TRYING = 2, 4
# Medians of windows are compared, because a core of a virtual machine may be a fifth slower for seconds.
REMEMBERED = 9
RECENT = 3
GAIN = 1.05  # more cores are kept if they are at least this much faster
HOPELESS = 0.5  # below this share of the speed a trial of more cores ends at once
CHANGED = 0.6  # if the speed changes by this factor or its inverse, another number of cores is tried
WORTH_SECONDS, WORTH_WINDOWS = 30.0, 8  # a trial only pays if the run still takes at least this long


class Cores(NamedTuple):
    """The cores that may train a run: `first` at its start, up to `most`, and the reason for these numbers, if any.

    `threads` is the number of threads that all processes share; 0 means one thread each. With `by_threads`, one process
    trains, with a thread for each core.
    """

    first: int
    most: int
    threads: int
    by_threads: bool
    reason: str = ""

    def resumed(self, state: TrainState) -> int:
        """Return the cores for a run that starts, or the cores recorded in the state of a run that continues.

        Records them in the state.
        """
        cores = min(state.cores or self.first, self.most) if self.first < self.most else self.first
        if cores != state.cores:
            state.cores = cores
            state.trial = None
        return cores

    def processes(self, cores: int) -> int:
        """Return the number of processes that train when the run uses this many cores."""
        return 1 if self.by_threads else cores

    def threads_each(self, cores: int, *, processes_here: int) -> int:
        """Return the number of threads of each process."""
        return cores if self.by_threads else max(1, self.threads // processes_here)


def can_divide(*, on_cpu: bool, is_standard: bool) -> bool:
    """Return True if a run can start processes that share its work.

    `is_standard` says that the run's optimizer comes from `build_optimizer`.
    """
    return on_cpu and is_standard and sys.platform == "linux"


def most_workers(config: TrainConfig, *, can_divide: bool) -> int:
    """Return how many workers a run on a CPU can have, before its model is known."""
    if started_by_torchrun():
        return int(os.environ["WORLD_SIZE"])
    if config.workers != "auto":
        return config.workers
    return config.threads or available_cores() if can_divide else 1


def choose_cores(config: TrainConfig, model: Transformer, *, can_divide: bool, share: int = 1) -> Cores:
    """Choose the cores that may train a run. Refuses a number of workers that this process cannot start.

    `share` is the number of models that train at the same time; each gets an equal share of the cores.
    """
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
    cores = (config.threads or available_cores()) // share
    return Cores(1, max(1, min(cores, most)), config.threads // share, not can_divide)


def update_size(config: TrainConfig, model: Transformer) -> float:
    """Return the number of parameters × tokens in an update."""
    return float(model.parameter_count()) * config.batch_tokens * config.accumulate_steps


def window_size(config: TrainConfig, model: Transformer) -> int:
    """Return the number of updates in a window (the stretch between two decisions), the same on every machine."""
    return max(FEWEST, ceil(WINDOW / update_size(config, model)))


def begin_with_cores(state: TrainState, earlier: TrainState) -> TrainState:
    """Let a run begin with the cores that an earlier run of such a model had in the end, and try others later."""
    state.cores = earlier.cores
    state.gains = earlier.gains
    state.trial_at = FIRST * SPACING
    return state


class CoreChoice:
    """Tries other numbers of cores, up to `most`, each for a stretch of the run, called a window.

    The state of the run records the trial in progress. `start` starts the processes for a number of cores before they
    are needed, and ends superfluous ones. `can_start` waits for the processes, and returns False if they have failed.
    `say` reports a line about the result.
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
        self._most = most
        self._window = window
        self._start = start
        self._can_start = can_start
        self._say = say
        self._tokens, self._seconds, self._updates = 0.0, 0.0, 0  # of this window
        self._speeds: list[float] = []  # tokens per second in the last windows with the present cores
        self._started = 0  # cores for which processes are waiting

    def count(self, tokens: int, seconds: float) -> None:
        """Count an update, and the time that it took."""
        self._tokens = self._tokens + tokens
        self._seconds = self._seconds + seconds
        self._updates = self._updates + 1

    def choose(self, state: TrainState, updates_left: int) -> int:
        """Choose the number of cores after a window, and record it in `state`. Returns 0 if the number stays."""
        window = state.step // self._window
        speed = self._tokens / max(self._seconds, 1e-9)
        seconds_left = updates_left * self._seconds / max(1, self._updates)
        self._tokens = 0.0
        self._seconds = 0.0
        self._updates = 0
        self._speeds = [*self._speeds, speed][-REMEMBERED:]
        if state.trial:
            return self._continue(state, state.trial, window, speed)
        is_worth_it = seconds_left > WORTH_SECONDS and updates_left > WORTH_WINDOWS * self._window
        state.trial_at = state.trial_at or FIRST
        usual = median(self._speeds[:-RECENT] or [speed])
        now = median(self._speeds[-RECENT:])
        if len(self._speeds) >= 2 * RECENT and not CHANGED < now / usual < 1 / CHANGED:
            # The trial must not be compared with windows that were chosen because they were slow or fast.
            self._speeds = []
            state.trial_at = window + RECENT
            state.tries_fewer = now < usual
            state.gains = []
            return 0
        cores = self._next(state)
        if not is_worth_it or cores == state.cores or window < state.trial_at - STARTING:
            return 0
        if cores > state.cores:
            self._start_ahead(cores)
        if window < state.trial_at:
            return 0
        return self._begin(state, window, cores) if cores < state.cores or self._has_started(state, cores) else 0

    def _next(self, state: TrainState) -> int:
        """Return the number of cores to try next: more or fewer, as in the last successful trial.

        If that is not possible, try the opposite.
        """
        more = min(2 * state.cores, self._most)
        fewer = max(1, state.cores // 2)
        return fewer if (state.tries_fewer and fewer < state.cores) or more == state.cores else more

    def _begin(self, state: TrainState, window: int, cores: int) -> int:
        state.trial = CoreTrial(state.cores, median(self._speeds), window + TRYING)
        state.cores = cores
        self._speeds = []
        return cores

    def _continue(self, state: TrainState, trial: CoreTrial, window: int, speed: float) -> int:
        """Measure another window of a trial. End the trial after its last window, or once it cannot succeed."""
        if trial.cores > state.cores:  # these cores may be used again
            self._start_ahead(trial.cores)
        if window <= trial.until - TRYING + 1:  # warming up
            self._speeds = []
            return 0
        is_hopeless = trial.cores < state.cores and speed < HOPELESS * trial.speed
        return self._judge(state, trial, window) if window >= trial.until or is_hopeless else 0

    def _judge(self, state: TrainState, trial: CoreTrial, window: int) -> int:
        """End a trial: keep its cores, or return to the previous ones."""
        tried = state.cores
        measured = median(self._speeds)
        (fewer, slow), (more, fast) = sorted([(trial.cores, trial.speed), (tried, measured)])
        gains = [gain for cores, gain in state.gains if cores == more] + [fast / max(slow, 1e-9)]
        state.gains = [(more, gain) for gain in gains[-RECENT:]]
        chosen = more if median(gains[-RECENT:]) > GAIN else fewer
        self._say(f"on {more} cores {gains[-1]:.2f} times as fast as on {fewer}: {chosen} train from now on")
        is_sure = (gains[-1] > GAIN) == (chosen == more)  # otherwise the comparison is repeated soon
        state.trial = None
        state.tries_fewer = (chosen == fewer) == is_sure
        if chosen != tried and more == chosen and not self._has_started(state, more):
            chosen = tried
        state.cores = chosen
        if self._started and chosen != self._started:
            self._start(1)
            self._started = 0
        self._speeds = [measured if chosen == tried else trial.speed]
        goes_on = chosen == tried and (self._next(state) < chosen) == state.tries_fewer
        state.trial_at = window + STARTING if goes_on or not is_sure else _later_trial(window)
        return 0 if chosen == tried else chosen

    def _start_ahead(self, cores: int) -> None:
        if self._started != cores:
            self._start(cores)
            self._started = cores

    def _has_started(self, state: TrainState, cores: int) -> bool:
        """Return True if the processes for these cores are ready. If they have failed, they are not tried again."""
        self._start_ahead(cores)
        self._started = 0  # the processes join the run
        if self._can_start():
            return True
        self._most = state.cores
        self._say(f"the processes for {cores} cores could not start, for the error above; {state.cores} train on")
        return False


def _later_trial(window: int) -> int:
    """Return the window of the next trial if no trial has succeeded. The windows of trials are FIRST · SPACINGⁿ."""
    later = FIRST
    while later <= window:
        later *= SPACING
    return later
