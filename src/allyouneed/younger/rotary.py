"""Rotary positions (Su et al., 2021), an option: queries and keys are rotated, and nothing is added to embeddings.

    ⟨rotate(q, m), rotate(k, n)⟩ depends only on q, k and m − n

At position m, each pair of numbers in a query or key is rotated by m times a frequency. The frequencies are those of
`position.py`. The paper's model does not use rotary positions.
"""

from functools import lru_cache

import torch
from torch import Tensor

from ..nn import KVCache, MultiHeadAttention
from ..nn.position import PositionalEncoding, sinusoids

TABLE_ROWS = 4096  # a table has a multiple of this number, so that few tables are made


def rotate(x: Tensor, *, start: int = 0, turn: float = 1.0) -> Tensor:
    """Rotate the vector at each position by its angles. `turn` = −1 rotates back.

    Number i of the first half is paired with number i of the second half; if the width is odd, the last number stays.
    Shapes: (…, L, K) in and out. Positions are counted from `start`.
    """
    end = start + x.size(-2)
    half = x.size(-1) // 2
    cosines, sines = (table.narrow(0, start, x.size(-2)) for table in turns(end, x.size(-1), x.device))
    first = x[..., :half]
    second = x[..., half : 2 * half]
    last = x[..., 2 * half :]
    partners = torch.cat((second, first, last), -1)
    return torch.addcmul(x * cosines, partners, turn * sines).to(x.dtype)


def turns(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the factors for each number of a vector and for its partner, at `length` or more positions: (≥ L, K)."""
    return _tables(-(-length // TABLE_ROWS) * TABLE_ROWS, width, device)


@lru_cache(maxsize=16)
def _tables(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Compute the tables once; every layer of every update uses them."""
    with torch.inference_mode(False):  # training may use these tables later
        table = sinusoids(length, width - width % 2)
        sine = table[:, 0::2]
        cosine = table[:, 1::2]
        last = table.new_ones(length, width % 2)
        return torch.cat((cosine, cosine, last), -1).to(device), torch.cat((-sine, sine, 0 * last), -1).to(device)


class RotaryAttention(MultiHeadAttention):
    """Self-attention whose queries and keys are rotated. The rest is as in `MultiHeadAttention`."""

    def project(
        self, query: Tensor, key: Tensor, value: Tensor, cache: KVCache | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Project as `MultiHeadAttention` does, then rotate. A cache keeps the keys before rotation."""
        queries, keys, values = super().project(query, key, value, cache)
        return rotate(queries, start=keys.size(2) - queries.size(2)), rotate(keys), values


class NoPositions(PositionalEncoding):
    """Adds no position vectors and only applies dropout. The rest is as in `PositionalEncoding`."""

    def __init__(self, *, d_model: int, max_length: int = 5000, dropout: float = 0.1) -> None:
        super().__init__(d_model=d_model, max_length=max_length, dropout=dropout)
        self.encoding.zero_()
