"""A time budget: from the recent speed, plan again and again how many updates fit into the remaining time.

All times are in seconds. The time of a run is the sum over its processes; while a run is stopped, no time passes.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from math import ceil
from pathlib import Path
from threading import Event, Thread

from ..config import TrainConfig
from ..data.pairs import Pair
from ..errors import DataError, TrainingError, refused
from ..machine.files import read_whole
from .state import TrainState, UpdatePlan

# All validations except the last take at most VALIDATION_SHARE of the budget. Each translates so few pairs that at
# least FEWEST_VALIDATIONS fit into that share.
VALIDATION_SHARE = 0.07
FEWEST_VALIDATIONS = 5
SAVE_SHARE = 0.02  # of the time, for checkpoints without a validation
PROBED_SAMPLES = 32  # pairs that are translated to measure how many pairs a validation can translate
# The number of updates is planned again after PLANNED_SHARE of the remaining updates. The speed is a mean over
# AVERAGED_SHARE of all updates, and over at least FEWEST_AVERAGED.
PLANNED_SHARE = 0.03
AVERAGED_SHARE = 0.05
FEWEST_AVERAGED = 8
# Time kept for closing files and ending the process: a share of the budget and at least SPARE_SECONDS. If the command
# took long to start, on a busy or slow machine, it is at least START_SHARE of that time.
SPARE_SHARE = 0.005
SPARE_SECONDS = 0.5
START_SHARE = 0.5
# Time kept for scoring test pairs: CLOSING_SHARE of the budget, at most MOST_CLOSING seconds. Once a validation has
# been timed, it is at most CLOSING_VALIDATIONS times as long (beam search is slower than greedy search), plus
# CLOSING_SECONDS for baselines and the report.
CLOSING_SHARE = 0.06
MOST_CLOSING = 60.0
CLOSING_VALIDATIONS = 5.0
CLOSING_SECONDS = 10.0
USED_FILE, NOTE_SECONDS = "used_seconds.txt", 0.5  # in the folder of a run; seconds between two writes of that file


class Stopwatch:
    """Measures the seconds that a run has used: since it was made, or since `begun`, and in earlier processes.

    `begun` is the time when the command was started, which imports may have delayed. `before` is the number of seconds
    in earlier processes. With `closing`, the budget includes the work after the run has ended: scoring test pairs.
    `now` is a clock.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, *, begun: float | None = None, closing: bool = False
    ) -> None:
        self.now = now
        self.before = 0.0
        self._closing = closing
        self._begun = now() if begun is None else begun
        self._is_noted = False
        self._start_seconds = now() - self._begun

    def go_on_after(self, seconds: float) -> None:
        """Count the seconds that earlier processes of the run used, if they are more than those counted so far."""
        self.before = max(self.before, seconds)

    def seconds(self) -> float:
        """Return the seconds used so far."""
        return self.before + self.now() - self._begun

    def twin(self) -> "Stopwatch":
        """Make a stopwatch that began at the same time, for a process of this machine that trains another model."""
        twin = copy(self)
        twin._is_noted = False
        return twin

    def closing_seconds(self, budget: float, validation: float = 0.0) -> float:
        """Return the seconds of a budget that are kept for the work after the run.

        `validation` is the time of the last validation, from which the time to score test pairs is estimated; 0 if
        there was no validation yet.
        """
        if not self._closing:
            return 0.0
        measured = CLOSING_VALIDATIONS * validation + CLOSING_SECONDS if validation else MOST_CLOSING
        return min(MOST_CLOSING, CLOSING_SHARE * budget, measured)

    def left(self, minutes: float) -> float:
        """Return the seconds of a budget that are left, without the time to close files and end the process."""
        spare = max(SPARE_SECONDS, SPARE_SHARE * 60 * minutes) + START_SHARE * self._start_seconds
        return 60 * minutes - self.seconds() - spare

    def require_time(self, config: TrainConfig) -> None:
        """Refuse a budget that leaves no time for updates. Call this before the first update."""
        if config.minutes and self.left(config.minutes_each) <= 0:
            used = self.seconds()
            minutes = config.rounds * max(0.1, 2 * used / 60, 4 * self._start_seconds / 60)
            enough = ceil(minutes) if minutes > 1 else ceil(10 * minutes) / 10
            raise TrainingError(
                f"train.minutes={config.minutes:g} leaves no time to train: preparing took {used:.1f} seconds; give at "
                f"least {enough:g}"
            ).mended_by("--minutes", f"{enough:g}")

    @contextmanager
    def noted(self, file: Path, *, goes_on: bool) -> Iterator[None]:
        """Keep the seconds used in a file inside the `with` block, so that the time of a killed process is not lost.

        With `goes_on`, the first such block starts counting from the seconds in the file. At the end, the file is
        removed if its folder contains nothing else.
        """
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        has_ended = Event()
        with refused(DataError, f"{file} is damaged", OSError, ValueError, remedy="remove it to continue without it"):
            if goes_on and not self._is_noted:  # later the file has this process's own seconds
                self.before = float(read_whole(file) or self.before)
        self._is_noted = True

        def note() -> None:
            # Has a fixed length, so that a killed process cannot leave half of it.
            os.pwrite(descriptor, f"{self.seconds()!r:<24}\n".encode(), 0)

        def note_on() -> None:
            while not has_ended.wait(NOTE_SECONDS):
                note()

        note()
        thread = Thread(target=note_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()
            note()
            os.close(descriptor)
            if os.listdir(file.parent) == [file.name]:
                file.unlink()
                file.parent.rmdir()


def within_budget(
    config: TrainConfig, stopwatch: Stopwatch, progress: Callable[[str, int, int | None], None]
) -> Callable[[str, int, int | None], None]:
    """Wrap `progress` so that it raises an error when the time budget runs out before training has started."""

    def report(what: str, done: int, total: int | None) -> None:
        progress(what, done, total)
        stopwatch.require_time(config)

    return report


class Budget:
    """The time budget of a run, `config.minutes_each`. Its measurements are in the run's `TrainState`.

    `has_test` says that there are test pairs, so that time is kept for scoring them.
    """

    def __init__(self, config: TrainConfig, stopwatch: Stopwatch, *, has_test: bool = True) -> None:
        self._config = config
        self._stopwatch = stopwatch
        self._has_test = has_test
        self.seconds = 60 * config.minutes_each
        self._save_seconds = 0.0
        self._is_unmeasured = False

    def used(self) -> float:
        """Return the seconds that the run has used so far."""
        return self._stopwatch.seconds()

    def begin(self, state: TrainState) -> UpdatePlan:
        """Make the first plan of a run, or a new plan after a stop or a rollback.

        The time since the last checkpoint does not count as spent in updates.
        """
        config = self._config
        used = self.used()
        state.other_seconds += used - state.used_seconds
        state.used_seconds = used
        if state.plan is None:
            self._is_unmeasured = True
            state.other_seconds = used
            plan = UpdatePlan(state.step, state.step, config.steps, state.step + 1, 0.0, used)
        elif state.minutes != config.minutes:  # the schedule is adapted to the new length
            position = state.position(config) * min(1.0, state.minutes / config.minutes)
            steps = state.step + max(1, ceil(config.steps - position))
            speed = state.plan.seconds_per_update
            updating = used - state.other_seconds
            plan = UpdatePlan(state.step, position, steps, state.step + 1, speed, used, updating)
        else:
            plan = state.plan
        state.minutes = config.minutes
        return plan

    def count_update(self, state: TrainState) -> None:
        """Exclude the first update of the run from the measured speed, because it also allocates memory."""
        if self._is_unmeasured and state.plan:
            state.other_seconds = self.used() - state.plan.updating
        self._is_unmeasured = False

    def plan(self, state: TrainState) -> UpdatePlan:
        """Plan the updates that fit into the rest of the budget."""
        config = self._config
        earlier = state.plan
        if earlier is None:
            return self.begin(state)
        used = self.used()
        updating = used - state.other_seconds
        count = state.step - earlier.step
        position = state.position(config)
        speed = _recent(earlier, (updating - earlier.updating) / max(1, count), count, state.step)
        left = self._left(state) - self._validations_left(state, position)
        most = ceil(config.steps - position)
        fitting = most if left > speed * most else int(left / speed) if left > 0 else 0
        until = max(1, min(ceil(PLANNED_SHARE * fitting), 2 * count))
        return UpdatePlan(state.step, position, state.step + fitting, state.step + until, speed, used, updating)

    def may_validate(self, state: TrainState) -> bool:
        """Return True if another validation would stay within the share of the time that validations may take."""
        seconds = state.validating_seconds + state.validation_seconds
        return seconds <= VALIDATION_SHARE * self.used()

    def may_save(self, state: TrainState) -> bool:
        """Return True if a checkpoint is due without a validation, which requires that writing it takes little time."""
        return self.used() - state.used_seconds >= self._save_seconds / SAVE_SHARE

    def count_samples(self, evaluate: Callable[[list[Pair]], object], pairs: Sequence[Pair]) -> int:
        """Choose how many validation pairs to translate, from the time that `evaluate` takes for a few of them."""
        if len(pairs) <= PROBED_SAMPLES:
            return len(pairs)
        few = list(pairs[:: ceil(len(pairs) / PROBED_SAMPLES)])
        begin = self.used()
        evaluate(few)
        seconds = (self.used() - begin) / len(few)
        allowed = VALIDATION_SHARE * self.seconds / FEWEST_VALIDATIONS
        return len(pairs) if seconds * len(pairs) <= allowed else max(len(few), int(allowed / seconds))

    def count_validation(self, state: TrainState, begin: float) -> None:
        """Count the time of a validation that began after `begin` seconds."""
        state.validation_seconds = self.used() - begin
        state.validating_seconds += state.validation_seconds
        state.other_seconds += state.validation_seconds

    def count_save(self, state: TrainState, begin: float) -> None:
        """Count the time of writing a checkpoint that began after `begin` seconds."""
        self._save_seconds = self.used() - begin
        state.other_seconds += self._save_seconds

    def _left(self, state: TrainState) -> float:
        """Return the seconds for updates and validations, without the time that the end of the run takes."""
        config = self._config
        validations = 2 if config.average_checkpoints > 1 else 1
        end = validations * state.validation_seconds + 2 * self._save_seconds
        left = self._stopwatch.left(config.minutes_each) - end
        if not self._has_test:
            return left
        return left - self._stopwatch.closing_seconds(self.seconds, state.validation_seconds)

    def _validations_left(self, state: TrainState, position: float) -> float:
        """Return the seconds for all remaining validations except the last."""
        every = self._config.validate_every
        count = max(0, ceil(self._config.steps / every) - 1 - int(position // every))
        allowed = VALIDATION_SHARE * self.seconds - state.validating_seconds
        return max(0.0, min(count * state.validation_seconds, allowed))


def _recent(earlier: UpdatePlan, speed: float, count: int, step: int) -> float:
    """Return the seconds per update: the mean of the earlier value and the last `count` updates, weighted by number.

    Returns 0 while only the first update of the run has been measured, because it also allocates memory.
    """
    if not earlier.seconds_per_update:
        return speed if earlier.until > earlier.step + 1 else 0.0
    averaged = min(step - 1, max(FEWEST_AVERAGED, AVERAGED_SHARE * earlier.steps))
    return earlier.seconds_per_update + (speed - earlier.seconds_per_update) * min(1.0, count / averaged)
