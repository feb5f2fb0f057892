"""Pairs → better weights."""

from .auto import Draft
from .begin import fit
from .loop import Update, train
from .loss import disagreement, mean_loss, projected_loss, smoothed_cross_entropy
from .optimizer import Muon, make_optimizer, orthogonal
from .place import Place
from .replace import replaced, source_paths
from .schedule import paper_rate, rate_at
from .watch import Judge, Pause, Sample, Verdict, Watch

__all__ = [
    "Draft",
    "Judge",
    "Muon",
    "Pause",
    "Place",
    "Sample",
    "Update",
    "Verdict",
    "Watch",
    "disagreement",
    "fit",
    "make_optimizer",
    "mean_loss",
    "orthogonal",
    "paper_rate",
    "projected_loss",
    "rate_at",
    "replaced",
    "smoothed_cross_entropy",
    "source_paths",
    "train",
]
