"""The log-probability of every token of given targets, and the mean of what several models give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..lazy import Tensor, torch

if TYPE_CHECKING:
    from ..nn import Memory, Transformer


def target_log_probabilities(
    model: Transformer, target: Tensor, memory: Memory, *, banned_ids: Sequence[int] = (), renormalize: bool = True
) -> Tensor:
    """The log-probability, in nats, of every token of a target but its first, given all before it.

    `banned_ids` have a probability of 0, as in a search; with `renormalize` the others share what they had. Shapes:
    target (B, T + 1), padded at the end → (B, T), 0 where there is padding.
    """
    logits = model.decode(target[:, :-1], memory)
    if not renormalize:
        logits = logits.float().log_softmax(-1)
    logits[..., list(banned_ids)] = -torch.inf
    next_ids = target[:, 1:]
    log_probabilities = logits.float().log_softmax(-1) if renormalize else logits
    gained = log_probabilities.gather(-1, next_ids[:, :, None])[:, :, 0]  # (B, T, V) → (B, T)
    return gained.masked_fill(next_ids == model.config.effective_target_pad_id, 0.0)


def mean_probability(log_probabilities: Sequence[Tensor]) -> Tensor:
    """The log of the mean of probabilities of the same tokens by several models; one alone is unchanged.

    Shapes: each (…) → (…), logarithms in and out.
    """
    return torch.stack(tuple(log_probabilities)).logsumexp(0) - math.log(len(log_probabilities))
