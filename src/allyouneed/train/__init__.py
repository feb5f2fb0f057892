"""Training (§5): loss, optimizer, learning-rate schedule, and the loop of updates."""

from .gradients import Gradients, add_gradients, batch_loss
from .loop import Update, updates
from .loss import mean_loss, smoothed_cross_entropy, symmetric_kl
from .optimizer import make_optimizer
from .schedule import learning_rate_at, paper_learning_rate

__all__ = [
    "Gradients",
    "Update",
    "add_gradients",
    "batch_loss",
    "learning_rate_at",
    "make_optimizer",
    "mean_loss",
    "paper_learning_rate",
    "smoothed_cross_entropy",
    "symmetric_kl",
    "updates",
]
