"""Attention masks (§3.2.3): bool, True = may attend. `Transformer` makes them once in each call."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """True at tokens, False at padding. Shapes: (B, L) → (B, 1, 1, L)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, *, device: torch.device | None = None) -> Tensor:
    """Each token may attend to itself and to earlier ones. Returns (L, L).

    Padding comes after the tokens, so this mask hides it from them, too.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
