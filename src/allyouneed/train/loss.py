"""Cross entropy with label smoothing (§5.4; Szegedy et al., 2015)."""

from torch import Tensor


def smoothed_cross_entropy(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Compute the cross entropy of `logits` with a target that has probability 1 − ε plus ε/V for every token.

    In nats per token: −Σ q log softmax(logits), with q the smoothed target. Shapes: logits (…, V), target (…) → (…).
    """
    log_probabilities = logits.log_softmax(-1)
    of_target = log_probabilities.gather(-1, target[..., None])[..., 0]
    return -((1 - smoothing) * of_target + smoothing * log_probabilities.mean(-1))


def mean_loss(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    """Average `smoothed_cross_entropy` over the tokens of a batch without padding, in nats per token.

    Shapes: logits (B, T, V), target (B, T) → ().
    """
    is_token = target != pad_id
    return smoothed_cross_entropy(logits[is_token], target[is_token], smoothing=smoothing).mean()


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Compute the symmetric KL divergence of two predictions: the mean of KL(p ‖ q) and KL(q ‖ p), in nats per token.

    Shapes: log-probabilities, (…, V) each → (…). The term that R-Drop adds to the loss (Liang et al., 2021).
    """
    return ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2
