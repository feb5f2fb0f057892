"""Pairs → better weights."""

from ..run.auto import Draft
from ..run.callback import Evaluation, Evaluator, Sample, TrainingCallback, Validation
from ..run.fit import fit
from ..run.replace import replaced, source_paths
from .loop import Update, train
from .loss import fused_linear_cross_entropy, mean_loss, smoothed_cross_entropy, symmetric_kl
from .optimizer import Muon, make_optimizer, newton_schulz
from .schedule import learning_rate_at, paper_learning_rate
from .state import TrainState

__all__ = [
    "Draft",
    "Evaluator",
    "Muon",
    "Validation",
    "TrainState",
    "Sample",
    "Update",
    "Evaluation",
    "TrainingCallback",
    "symmetric_kl",
    "fit",
    "make_optimizer",
    "mean_loss",
    "newton_schulz",
    "paper_learning_rate",
    "fused_linear_cross_entropy",
    "learning_rate_at",
    "replaced",
    "smoothed_cross_entropy",
    "source_paths",
    "train",
]
