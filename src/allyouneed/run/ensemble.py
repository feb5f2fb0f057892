"""The further models of an ensemble: the recipe of the first model with other seeds, each in a folder of its own.

Models with different random starts make different mistakes, so the mean of their probabilities is right more often
than each of them. docs/measured/strings.md compares it with a single model that was trained for as long as all of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..bundle import folder_of_model
from ..config import Recipe
from ..train.loop import Update
from .budget import Stopwatch
from .callback import SilentCallback, TrainingCallback, Validation, no_report
from .hooks import Hooks

SEEDS_APART = 1_000_003  # so that the ensembles of two neighbouring seeds have no model in common


def further_models(recipe: Recipe, output: Path) -> Iterator[tuple[Recipe, Path]]:
    """Yield the recipe and the folder of every model of an ensemble except the first, whose folder is `output`."""
    settings = recipe.train
    for number in range(2, settings.ensemble + 1):
        seed = (settings.seed + SEEDS_APART * (number - 1)) % 2**63
        train = replace(settings, ensemble=1, minutes=settings.minutes_each, seed=seed)
        yield replace(recipe, train=train), folder_of_model(output, number)


def hooks_of_further(hooks: Hooks) -> Hooks:
    """Return the hooks of a further model, whose time begins now. It has no page and no film."""
    return replace(hooks, callback=_Progress(hooks.callback), report=no_report, film=None, stopwatch=Stopwatch())


class _Progress(SilentCallback):
    """Passes on the updates and validations of a further model; its messages are only in its log."""

    def __init__(self, callback: TrainingCallback) -> None:
        self._callback = callback

    def on_train_begin(self, step: int, steps: int) -> None:
        self._callback.on_train_begin(step, steps)

    def on_update(self, update: Update, steps: int) -> None:
        self._callback.on_update(update, steps)

    def on_validation(self, validation: Validation) -> None:
        self._callback.on_validation(validation)
