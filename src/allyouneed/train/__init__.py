"""Training (§5): loss, optimizer, learning-rate schedule, and the loop of updates."""

from .loop import Update, updates
from .loss import fused_linear_cross_entropy, mean_loss, smoothed_cross_entropy, symmetric_kl
from .optimizer import Muon, make_optimizer, newton_schulz
from .schedule import learning_rate_at, paper_learning_rate
from .state import TrainState

__all__ = [
    "Muon",
    "TrainState",
    "Update",
    "fused_linear_cross_entropy",
    "learning_rate_at",
    "make_optimizer",
    "mean_loss",
    "newton_schulz",
    "paper_learning_rate",
    "smoothed_cross_entropy",
    "symmetric_kl",
    "updates",
]
