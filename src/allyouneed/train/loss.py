"""Cross entropy with label smoothing (§5.4; Szegedy et al., 2015)."""

import torch.nn.functional as F
from torch import Tensor


def smoothed_cross_entropy(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """How surprised `logits` are by a target that is right with 1 − ε and any word with ε/V.

    Nats per word: −Σ q log softmax(logits), with q the smoothed target. Shapes: logits (…, V),
    target (…) → (…). The training loss is `mean_loss`, the same by PyTorch's fused kernel.
    """
    log_probabilities = logits.log_softmax(-1)
    of_target = log_probabilities.gather(-1, target[..., None])[..., 0]
    return -((1 - smoothing) * of_target + smoothing * log_probabilities.mean(-1))


def mean_loss(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    """`smoothed_cross_entropy` over the words of a batch, padding left out: its mean, in nats a word.

    Shapes: logits (B, T, V), target (B, T) → ().
    """
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing)
