"""What a run measures between two validations: its speed, and the loss and gradient norm along the way."""

import time
from collections.abc import Callable
from typing import Any

import torch

from .state import TrainState

COURSE_POINTS = 20  # of the curves between two validations


class Speed:
    """Target tokens per second, padding included, since the last `restart`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on, from zero."""
        self._tokens, self._begun = 0, time.monotonic()

    def count(self, tokens: int) -> None:
        """Count the tokens of one more update."""
        self._tokens += tokens

    def tokens_per_second(self) -> float | None:
        """The speed so far; None before the first update."""
        return self._tokens / (time.monotonic() - self._begun) if self._tokens else None


def mean_gradient_norm(state: TrainState) -> float | None:
    """The mean over the updates since the last validation; None without any."""
    return torch.stack(state.gradient_norms).mean().item() if state.gradient_norms else None


def course_since_validation(state: TrainState, learning_rate_at: Callable[[int], float]) -> list[dict[str, Any]]:
    """Means of loss and gradient norm over at most `COURSE_POINTS` parts of the updates since the last validation.

    `step` is the last update of a part. Updates that were skipped are not counted: the steps before them are then too
    high by their number.
    """
    count = len(state.losses)
    first = state.step - count
    parts, lines = min(COURSE_POINTS, count), []
    for part in range(parts):
        begin, end = part * count // parts, (part + 1) * count // parts
        lines.append(
            {
                "step": first + end,
                "loss": torch.stack(state.losses[begin:end]).mean().item(),
                "gradient_norm": torch.stack(state.gradient_norms[begin:end]).mean().item(),
                "learning_rate": state.learning_rate_factor * learning_rate_at(first + end),
            }
        )
    return lines
