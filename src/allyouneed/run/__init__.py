"""A whole training run: from a recipe to a bundle, with checkpoints from which it can resume."""

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
from .fit import join_run, preview_training, run_training
from .hooks import Hooks
from .preparation import RunPairs, prepare_only, store_pairs
from .processes import is_follower, was_restarted
from .run_bundle import average_bundles
from .run_folder import replaced, source_paths

__all__ = [
    "Evaluation",
    "Evaluator",
    "Hooks",
    "Reporter",
    "RunPairs",
    "Sample",
    "SilentCallback",
    "Stopwatch",
    "TrainingCallback",
    "Validation",
    "average_bundles",
    "is_follower",
    "join_run",
    "prepare_only",
    "preview_training",
    "replaced",
    "run_training",
    "source_paths",
    "store_pairs",
    "telling_scores",
    "was_restarted",
]
