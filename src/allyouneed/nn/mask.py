"""Attention masks (§3.2.3): bool, True = may attend. `Transformer` makes them once in each call."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return True at tokens, False at padding. Shapes: (B, L) → (B, 1, 1, L)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, past: int = 0, *, device: torch.device | None = None) -> Tensor:
    """Let each of `length` tokens attend to itself, to earlier tokens and to `past` cached ones. Returns (L, past + L).

    Padding comes after the tokens, so this mask hides it as well.
    """
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)
