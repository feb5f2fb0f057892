"""Lists of ids → rectangular tensors, and these without their padding."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..device import move
from ..nn.packed import PackedSentences


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Rows of ids as one tensor, padded with `pad_id`. Returns (B, L), int64; (0, 1) of no rows."""
    longest = max(map(len, rows), default=1)
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], dtype=torch.int64).view(-1, longest)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """The real tokens of a batch, sentence after sentence: no padding.

    Shapes, of N source and M target tokens: source (N,), target_in and target_out (M,).
    """

    source: Tensor
    source_sentences: PackedSentences
    target_in: Tensor
    target_out: Tensor
    target_sentences: PackedSentences

    def to(self, device: torch.device) -> "PackedBatch":
        """The same batch on another device; the program does not wait for a CUDA GPU to copy pinned memory."""
        source, target_in, target_out = (move(ids, device) for ids in (self.source, self.target_in, self.target_out))
        return PackedBatch(
            source, self.source_sentences.to(device), target_in, target_out, self.target_sentences.to(device)
        )

    def pin_memory(self) -> "PackedBatch":
        """The same batch in memory from which a GPU copies by itself."""
        source, target_in, target_out = (ids.pin_memory() for ids in (self.source, self.target_in, self.target_out))
        return PackedBatch(
            source, self.source_sentences.pin_memory(), target_in, target_out, self.target_sentences.pin_memory()
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs of one update. Shapes: source (B, S), target (B, T + 1).

    `packed` has the same pairs without padding, where they were packed ahead.
    """

    source: Tensor
    target: Tensor
    packed: PackedBatch | None = field(default=None, kw_only=True)

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

    def pack(self, pad_id: int, target_pad_id: int) -> PackedBatch:
        """The batch without its padding, which is at the end of a row. To be called on the CPU, before `to`."""
        is_source, is_target = self.source != pad_id, self.target_out != target_pad_id
        return PackedBatch(
            self.source[is_source],
            _sentences(is_source),
            self.target_in[is_target],
            self.target_out[is_target],
            _sentences(is_target),
        )

    def duplicated(self) -> "Batch":
        """The batch repeated: all its pairs, then all of them again."""
        return Batch(torch.cat([self.source, self.source]), torch.cat([self.target, self.target]))

    def micro_batches(self, count: int) -> list["Batch"]:
        """The same pairs as at most `count` batches of nearly equal size; none if there is no pair."""
        if len(self.source) == 0:
            return []
        if count == 1:
            return [self]
        return [Batch(*sides) for sides in zip(self.source.chunk(count), self.target.chunk(count), strict=True)]


def _sentences(is_token: Tensor) -> PackedSentences:
    """Where the tokens of a padded batch are once it is packed: (B, L), bool."""
    lengths = is_token.sum(1)
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    return PackedSentences(offsets, is_token.flatten().nonzero()[:, 0], is_token.size(1))
