"""The further models of an ensemble: the recipe of the first model with other seeds, each in a folder of its own.

Models with different random starts make different mistakes, so the mean of their probabilities is right more often
than each of them. docs/measured/strings.md compares it with a single model that was trained for as long as all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ..bundle import folder_of_model
from ..config import Recipe
from ..machine.interrupts import no_signal
from ..train.loop import Update
from .budget import Stopwatch
from .callback import SilentCallback, TrainingCallback, Validation, no_report
from .hooks import Hooks

SEEDS_APART = 1_000_003  # so that the ensembles of two neighbouring seeds have no model in common


class FurtherModel(NamedTuple):
    """A model of an ensemble, except the first one."""

    number: int
    models: int  # in the ensemble
    recipe: Recipe
    folder: Path


@dataclass(frozen=True, slots=True)
class OtherModels:
    """The other models of the ensemble to which a model belongs, as far as they matter while it trains.

    `share` models train at the same time. `first` is the folder of the first model, whose pairs all models use; None
    for the first model itself. `earlier` is the folder of a model that the same process has trained before. The first
    model calls `begin` when it begins to train. `failure` returns a signal to stop if another model has failed, or 0.
    """

    share: int = 1
    first: Path | None = None
    earlier: Path | None = None
    begin: Callable[[], object] = no_signal
    failure: Callable[[], int] = no_signal


def further_models(recipe: Recipe, output: Path) -> list[FurtherModel]:
    """List every model of an ensemble except the first, whose folder is `output`."""
    settings = recipe.train
    models = []
    for number in range(2, settings.ensemble + 1):
        seed = (settings.seed + SEEDS_APART * (number - 1)) % 2**63
        train = replace(settings, ensemble=1, parallel_models=1, minutes=settings.minutes_each, seed=seed)
        other = replace(recipe, train=train)
        models.append(FurtherModel(number, settings.ensemble, other, folder_of_model(output, number)))
    return models


def hooks_of_further(hooks: Hooks, stopwatch: Stopwatch) -> Hooks:
    """Return the hooks of a further model, from those of the first. It has no page and no film."""
    return replace(hooks, callback=_Progress(hooks.callback), report=no_report, film=None, stopwatch=stopwatch)


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
