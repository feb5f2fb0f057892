"""Batches without padding, in which the tokens of all sentences follow one another."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import ModelConfig
from ..data.batch import Batch
from ..nn.embedding import refuse_unknown_ids
from ..nn.position import refuse_long
from .prefetch import prefetch


class PackedSentences(NamedTuple):
    """Which of N tokens belong to which of B sentences, and the length `longest` of the longest sentence.

    Shapes: offsets (B + 1,), int32: sentence b has the tokens from offsets[b] to offsets[b + 1]; cells (N,): the index
    of each token in a padded batch (B, longest), counted row by row.
    """

    offsets: Tensor
    cells: Tensor
    longest: int

    @property
    def positions(self) -> Tensor:
        """The position of each token in its sentence, counted from 0: (N,)."""
        return self.cells % self.longest

    def each(self, copy: Callable[[Tensor], Tensor]) -> "PackedSentences":
        """Replace every tensor by what `copy` makes of it."""
        return self._replace(offsets=copy(self.offsets), cells=copy(self.cells))

    def pad(self, x: Tensor) -> Tensor:
        """Arrange the tokens as a padded batch, with zeros as padding: (1, H, N, K) → (B, H, longest, K)."""
        sentences = len(self.offsets) - 1
        padded = x.new_zeros(x.size(1), sentences * self.longest, x.size(3)).index_copy(1, self.cells, x[0])
        return padded.view(x.size(1), sentences, self.longest, -1).transpose(0, 1)

    def pack(self, x: Tensor) -> Tensor:
        """Take the tokens out of a padded batch: (B, H, longest, K) → (1, H, N, K)."""
        return x.transpose(0, 1).flatten(1, 2).index_select(1, self.cells)[None]


class PackedBatch(NamedTuple):
    """The tokens of a batch, one sentence after another, without padding.

    Shapes, for N source and M target tokens: source (N,), target_in and target_out (M,).
    """

    source: Tensor
    source_sentences: PackedSentences
    target_in: Tensor
    target_out: Tensor
    target_sentences: PackedSentences

    def each(self, copy: Callable[[Tensor], Tensor]) -> "PackedBatch":
        """Replace every tensor by what `copy` makes of it, such as a copy on another device."""
        return PackedBatch(
            copy(self.source),
            self.source_sentences.each(copy),
            copy(self.target_in),
            copy(self.target_out),
            self.target_sentences.each(copy),
        )


@dataclass(frozen=True)
class PackedAhead(Batch):
    """A batch that also holds its pairs without padding. If it was made with `twice`, it holds them twice."""

    packed: PackedBatch


def packed_ahead(batches: Iterator[Batch], config: ModelConfig, *, twice: bool = False) -> Iterator[Batch]:
    """Yield the same batches, packed.

    A thread prepares them ahead of time, in pinned memory, from which a GPU can copy by itself.
    """

    def packed(batch: Batch) -> PackedAhead:
        tokens = pack_batch(batch, config, twice=twice)
        if torch.cuda.is_available():
            tokens = tokens.each(Tensor.pin_memory)
        return PackedAhead(batch.source, batch.target, tokens)

    return prefetch(map(packed, batches))


def pack_batch(batch: Batch, config: ModelConfig, *, twice: bool = False) -> PackedBatch:
    """Pack a batch on the CPU; with `twice`, pack all of it two times. Refuses the same ids as the model."""
    refuse_unknown_ids(batch.source, config.vocab_size)
    refuse_unknown_ids(batch.target, config.effective_target_vocab_size)
    refuse_long(max(batch.source.size(1), batch.target_in.size(1)), config.max_length)
    batch = batch.duplicated() if twice else batch
    is_source = batch.source != config.pad_id
    is_target = batch.target_out != config.effective_target_pad_id
    return PackedBatch(
        batch.source[is_source],
        _sentences(is_source),
        batch.target_in[is_target],
        batch.target_out[is_target],
        _sentences(is_target),
    )


def _sentences(is_token: Tensor) -> PackedSentences:
    """Compute where the tokens of a padded batch, (B, L) bool, are in the packed batch."""
    lengths = is_token.sum(1)
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    return PackedSentences(offsets, is_token.flatten().nonzero()[:, 0], is_token.size(1))
