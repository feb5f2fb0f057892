"""Pairs → better weights."""

from .loop import Update, train
from .loss import mean_loss, projected_loss, smoothed_cross_entropy
from .optimizer import Muon, make_optimizer, orthogonal
from .run import Pause, Watch, fit
from .schedule import paper_rate, rate_at

__all__ = [
    "Muon",
    "Pause",
    "Update",
    "Watch",
    "fit",
    "make_optimizer",
    "mean_loss",
    "orthogonal",
    "paper_rate",
    "projected_loss",
    "rate_at",
    "smoothed_cross_entropy",
    "train",
]
