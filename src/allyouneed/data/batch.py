"""Lists of ids → rectangular tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..device import move


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Rows of ids as one tensor, padded with `pad_id`. Returns (B, L), int64; (0, 1) of no rows."""
    longest = max(map(len, rows), default=1)
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], dtype=torch.int64).view(-1, longest)


@dataclass(frozen=True)
class Batch:
    """Pairs of one update. Shapes: source (B, S), target (B, T + 1)."""

    source: Tensor
    target: Tensor

    @property
    def target_in(self) -> Tensor:
        """The input of the decoder: the target without its last id, (B, T)."""
        return self.target[:, :-1]

    @property
    def target_out(self) -> Tensor:
        """The tokens to predict: the target without its first id, (B, T)."""
        return self.target[:, 1:]

    def count_tokens(self, target_pad_id: int) -> int:
        """The number of tokens to predict, without padding."""
        return int((self.target_out != target_pad_id).sum())

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(move(self.source, device), move(self.target, device))

    def duplicated(self) -> "Batch":
        """The batch repeated: all its pairs, then all of them again."""
        return Batch(torch.cat([self.source, self.source]), torch.cat([self.target, self.target]))

    def split(self, count: int) -> list["Batch"]:
        """The same pairs as at most `count` batches of nearly equal size; none if there is no pair."""
        if len(self.source) == 0:
            return []
        if count == 1:
            return [self]
        return [Batch(*sides) for sides in zip(self.source.chunk(count), self.target.chunk(count), strict=True)]
