"""A whole training run: from a recipe to a bundle, and on with it after an interruption."""

from .auto import Draft
from .callback import Evaluation, Evaluator, Sample, TrainingCallback, Validation
from .fit import fit
from .replace import replaced, source_paths

__all__ = [
    "Draft",
    "Evaluation",
    "Evaluator",
    "Sample",
    "TrainingCallback",
    "Validation",
    "fit",
    "replaced",
    "source_paths",
]
