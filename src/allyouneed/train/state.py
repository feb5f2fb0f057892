"""Where a run is: all that changes besides tensors."""

from dataclasses import dataclass
from math import isfinite

FEWEST_UPDATES = 100  # of a new model: before that its score says nothing
TOLERANCE = 0.001  # share of the score by which a pause must be better for patience to begin anew


@dataclass(slots=True)
class TrainState:
    """Updates done, and what has happened on the way. `step` is also the place in the data."""

    step: int = 0
    seconds: float = 0.0  # spent training
    learning_rate_factor: float = 1.0  # times the schedule's: halved at each rollback
    micro_batches: int = 1  # in which a batch is cut so that it fits into memory
    skipped: int = 0  # updates that were not finite
    skipped_in_a_row: int = 0
    rollbacks: int = 0  # since the last pause
    best: float | None = None  # what a pause with patience has seen of `early_stopping_metric`; more is better
    best_step: int = 0
    level: float | None = None  # of `early_stopping_metric` when patience last began anew
    validations_since_best: int = 0
    stopped_early: bool = False  # patience has run out
    finished: bool = False

    def count_update(self, is_finite: bool) -> None:
        """One more update was finite, or was skipped."""
        self.skipped += not is_finite
        self.skipped_in_a_row = 0 if is_finite else self.skipped_in_a_row + 1

    def update_best(self, value: float, *, first: int = 0, warmup: int = 0) -> bool:
        """Whether this pause is the best so far (an equal one is not); more is better.

        Before update `first` nothing is known of a model, so each pause replaces the one before. Up to
        update `warmup`, and after a gain of more than `TOLERANCE`, patience begins anew. What is not finite is
        never the best.
        """
        known = self.step >= first
        is_best = isfinite(value) and (self.best is None or value > self.best)
        if is_best:
            self.best, self.best_step = value if known else None, self.step
        begins_anew = not known or self.step <= warmup or self.level is None or _is_gain(self.level, value)
        if isfinite(value) and begins_anew:
            self.level, self.validations_since_best = value if known else None, 0
        else:
            self.validations_since_best += 1
        return is_best


def _is_gain(before: float, now: float) -> bool:
    return now - before > TOLERANCE * abs(before)
