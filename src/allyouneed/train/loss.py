"""Cross entropy with label smoothing (§5.4; Szegedy et al., 2015)."""

from torch import Tensor


def smoothed_cross_entropy(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Compute the cross entropy with a smoothed target: −Σ q log softmax(logits), in nats per token.

    The target distribution q gives the correct token 1 − ε + ε/V, and every other token ε/V, where ε is `smoothing`.
    Shapes: logits (…, V), target (…) → (…).
    """
    log_probabilities = logits.log_softmax(-1)
    of_target = log_probabilities.gather(-1, target[..., None])[..., 0]
    return -((1 - smoothing) * of_target + smoothing * log_probabilities.mean(-1))


def mean_loss(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    """Average `smoothed_cross_entropy` over the tokens of a batch, without padding, in nats per token.

    Shapes: logits (B, T, V), target (B, T) → ().
    """
    is_token = target != pad_id
    return smoothed_cross_entropy(logits[is_token], target[is_token], smoothing=smoothing).mean()


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Compute the symmetric KL divergence of two predictions: the mean of KL(p ‖ q) and KL(q ‖ p), in nats per token.

    R-Drop adds this term to the loss (Liang et al., 2021). Shapes: two tensors of log-probabilities (…, V) → (…).
    """
    return ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2
