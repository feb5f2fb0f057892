"""Positions added to the embeddings (§3.5): sines and cosines, or learned vectors (Table 3, row E).

    PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))        i = 0 … d_model/2 − 1

PE(pos + k) is PE(pos) with each pair (2i, 2i + 1) rotated by an angle that depends on k and i, but not on pos.
"""

import math

import torch
from torch import Tensor, nn

from ..config.settings import require_fraction, require_whole
from ..errors import ConfigError, InputError
from .dropout import Dropout
from .module import Module


def sinusoids(length: int, d_model: int) -> Tensor:
    """Compute the sines and cosines of every position. Returns (L, D), float32. Refuses an odd d_model.

    They are computed in double precision and always on the CPU, so that every device gets the same numbers.
    """
    require_whole("length", length)
    require_whole("d_model", d_model)
    if d_model % 2:
        raise ConfigError(f"d_model must be even, a sine and a cosine for each frequency; got {d_model}")
    position = torch.arange(length, dtype=torch.float64, device="cpu")
    frequency = torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu") * (-math.log(10_000) / d_model)
    )
    angle = torch.outer(position, frequency)  # (L, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()  # (L, D/2, 2) → (L, D)


class PositionalEncoding(Module):
    """Add sines and cosines to the vectors, then apply dropout.

    Shapes: (B, L, D) in and out. The encoding is a buffer: `to` moves and casts it with the module, but it is not saved
    and has no gradient. Refuses a sequence longer than `max_length`.
    """

    encoding: Tensor

    def __init__(self, *, d_model: int, max_length: int = 5000, dropout: float = 0.1) -> None:
        super().__init__()
        require_fraction("dropout", dropout)
        self.register_buffer("encoding", sinusoids(max_length, d_model), persistent=False)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add positions from `start` on: the number of tokens in the KV cache, or 0 without a cache."""
        return self.dropout(x + _cut(self.encoding, start, x.size(1)))


class LearnedPositions(Module):
    """Add a learned vector for each position, then apply dropout. The shapes are as in `PositionalEncoding`."""

    def __init__(self, *, d_model: int, max_length: int = 5000, dropout: float = 0.1) -> None:
        super().__init__()
        require_whole("max_length", max_length)
        require_whole("d_model", d_model)
        require_fraction("dropout", dropout)
        self.encoding = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.encoding, std=d_model**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        return self.dropout(x + _cut(self.encoding, start, x.size(1)))


def _cut(encoding: Tensor, start: int, length: int) -> Tensor:
    refuse_long(start + length, len(encoding))
    return encoding[start : start + length]


def refuse_long(length: int, max_length: int) -> None:
    """Refuse a sequence of more than `max_length` tokens."""
    if length > max_length:
        raise InputError(f"a sequence of {length} tokens is longer than max_length={max_length}")
