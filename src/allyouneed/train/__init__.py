"""Pairs → better weights."""

from .auto import Draft
from .begin import fit
from .loop import Update, train
from .loss import symmetric_kl, mean_loss, fused_linear_cross_entropy, smoothed_cross_entropy
from .optimizer import Muon, make_optimizer, newton_schulz
from .place import TrainState
from .replace import replaced, source_paths
from .schedule import paper_learning_rate, learning_rate_at
from .watch import Evaluator, Validation, Sample, Evaluation, TrainingCallback

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
