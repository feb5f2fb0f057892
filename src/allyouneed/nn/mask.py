"""Attention masks (§3.2.3): bool tensors, True = may attend. `Transformer` makes its masks once in each call."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Mask padding: True at tokens, False at `pad_id`. Shapes: (B, L) → (B, 1, 1, L)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, past: int = 0, *, device: torch.device | None = None) -> Tensor:
    """Mask later tokens: each of `length` tokens may attend to itself, earlier tokens and all `past` cached tokens.

    Returns (L, past + L), with L = `length`. Padding comes after the tokens, so this mask hides padding as well.
    """
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)
