"""The functions that a caller passes to a run in addition to the recipe, and a stopwatch."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import isfunction

from torch.optim import Optimizer

from ..bundle import ModelBuilder
from ..config import TrainConfig
from ..nn import Transformer
from ..younger.muon import build_optimizer
from .budget import Stopwatch
from .callback import Evaluator, Reporter, SilentCallback, TrainingCallback, no_report
from .log import FrameMaker

OptimizerFactory = Callable[[Transformer, TrainConfig], Optimizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The functions that a run calls, and the stopwatch of its time budget.

    `callback` is informed of the progress; `evaluate` scores the model at every validation; `film` makes the frames of
    film.jsonl; `optimizer` makes the optimizer, whose learning rate follows the recipe's schedule; `build_model` makes
    the model of a config; `report` writes a page about the run.
    """

    callback: TrainingCallback = field(default_factory=SilentCallback)
    evaluate: Evaluator | None = None
    film: FrameMaker | None = None
    optimizer: OptimizerFactory = build_optimizer
    build_model: ModelBuilder | None = None
    report: Reporter = no_report
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def are_standard(self) -> bool:
        """True if other processes can make the same model and optimizer, without calling a function of the caller."""
        return self.optimizer is build_optimizer and self.build_model is None

    @property
    def are_portable(self) -> bool:
        """True if other processes can also validate such a model, without calling a function of the caller."""
        has_known_functions = self.are_standard and (self.evaluate is None or _is_of_this_package(self.evaluate))
        return has_known_functions and self.stopwatch.now is time.monotonic


def _is_of_this_package(evaluate: Evaluator) -> bool:
    """Return True for a function that any process can import from this package."""
    package = __name__.partition(".")[0]
    return (
        isfunction(evaluate)
        and evaluate.__module__.partition(".")[0] == package
        and evaluate.__qualname__.isidentifier()
    )
