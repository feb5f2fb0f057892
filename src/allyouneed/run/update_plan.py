"""How many updates a time budget allows, and where each of them is in the learning-rate schedule."""

from typing import NamedTuple

from ..config import TrainConfig


class UpdatePlan(NamedTuple):
    """How many updates a time budget allows, as planned after update `step`: `steps` in all.

    `position` is that of update `step` in the schedule, counted in the updates of `TrainConfig.steps`. The updates up
    to the last one are spaced evenly over the rest of the schedule. The number is planned again after update `until`.
    `seconds_per_update` is the recent speed (0: not measured yet), `seconds` the part of the budget used up to `step`,
    and `updating` how much of this was spent in updates.
    """

    step: int
    position: float
    steps: int
    until: int
    seconds_per_update: float = 0.0
    seconds: float = 0.0
    updating: float = 0.0

    def position_at(self, step: int, config: TrainConfig) -> float:
        """The position of a later update in the schedule; that of the last one is `config.steps`."""
        done, rest = step - self.step, max(1, self.steps - self.step)
        return self.position + (config.steps - self.position) * done / rest
