"""Who may look at whom (§3.2.3): bool, True = may look. Made here, by `Transformer`, once a call."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Everyone may look at words, nobody at padding. Shapes: (B, L) → (B, 1, 1, L)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, *, device: torch.device | None = None) -> Tensor:
    """A word may look at itself and at those before it. Returns (L, L).

    Padding stands after the words, so this mask hides it from them too.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
