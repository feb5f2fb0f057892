"""Rotary positions (Su et al., 2021), an option: queries and keys are rotated, and nothing is added to embeddings.

    ⟨rotate(q, m), rotate(k, n)⟩ depends on q, k and m − n alone

Each pair of numbers of a query or key at position m is rotated by m times a frequency, those of the sines and cosines
of `position.py`. The paper's model has no use for this file.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import MultiHeadAttention
from .position import PositionalEncoding, sinusoids


def rotate(x: Tensor, *, start: int = 0, turn: float = 1.0) -> Tensor:
    """Rotate the vector at each position by its angles; `turn` = −1 rotates back.

    Number i of the first half and number i of the second half are a pair; of an odd width the last number stays.
    Shapes: (…, L, K), the positions from `start` on → the same.
    """
    length, half = x.size(-2), x.size(-1) // 2
    table = sinusoids(start + length, 2 * half).narrow(0, start, length).to(x.device)  # (L, 2·half): sine, cosine, …
    sine, cosine = turn * table[:, 0::2], table[:, 1::2]
    first, second, last = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    partners = torch.cat((second, first, last), -1)
    cosines = F.pad(torch.cat((cosine, cosine), -1), (0, last.size(-1)), value=1.0)
    sines = F.pad(torch.cat((-sine, sine), -1), (0, last.size(-1)))
    return torch.addcmul(x * cosines, partners, sines).to(x.dtype)


class RotaryAttention(MultiHeadAttention):
    """Self-attention whose queries and keys are rotated; otherwise as `MultiHeadAttention`."""

    def adjust_queries(self, queries: Tensor, start: int) -> Tensor:
        """Shapes: (B, H, T, K), of the positions from `start` on → the same."""
        return rotate(queries, start=start)

    def adjust_keys(self, keys: Tensor, start: int) -> Tensor:
        """Shapes: (B, H, S, K), of the positions from `start` on → the same."""
        return rotate(keys, start=start)


class NoPositions(PositionalEncoding):
    """Position vectors of zeros, so that only dropout is applied; otherwise as `PositionalEncoding`."""

    def __init__(self, *, d_model: int, max_length: int = 5000, dropout: float = 0.1) -> None:
        super().__init__(d_model=d_model, max_length=max_length, dropout=dropout)
        self.encoding.zero_()
