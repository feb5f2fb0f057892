"""A whole training run: from a recipe to a bundle, including resuming after an interruption."""

from ..auto import Draft
from .budget import Stopwatch
from .callback import (
    Evaluation,
    Evaluator,
    Reporter,
    Sample,
    SilentCallback,
    TrainingCallback,
    Validation,
    telling_scores,
)
from .fit import preview_training, run_training
from .preparation import RunPairs, prepare_only
from .processes import is_follower, was_restarted
from .run_bundle import average_bundles
from .run_folder import replaced, source_paths

__all__ = [
    "Draft",
    "Evaluation",
    "Evaluator",
    "Reporter",
    "RunPairs",
    "Sample",
    "SilentCallback",
    "Stopwatch",
    "TrainingCallback",
    "Validation",
    "average_bundles",
    "is_follower",
    "prepare_only",
    "preview_training",
    "replaced",
    "run_training",
    "source_paths",
    "telling_scores",
    "was_restarted",
]
