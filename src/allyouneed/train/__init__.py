"""Pairs → better weights."""

from .loop import Update, adam, train
from .loss import mean_loss, smoothed_cross_entropy
from .run import Pause, Watch, fit
from .schedule import paper_rate

__all__ = [
    "Pause",
    "Update",
    "Watch",
    "adam",
    "fit",
    "mean_loss",
    "paper_rate",
    "smoothed_cross_entropy",
    "train",
]
