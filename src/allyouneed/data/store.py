"""Sentence pairs on disk: one memory-mapped array with all ids of a side, and one with the start of each sentence."""

import mmap
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text.tokenizer import Tokenizer
from .pair import Pair

Indices = NDArray[np.int32]

SIDES = ("source", "target")
CHUNK_LENGTHS = 1_000_000  # sentences whose lengths are counted at a time


@dataclass(frozen=True, slots=True)
class Side:
    """The sentences of one language, one after another in `ids`; sentence i is ids[starts[i]:starts[i + 1]].

    Texts are stored the same way, with the bytes of UTF-8 as ids.
    """

    ids: NDArray[Any]
    starts: NDArray[np.int64]

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sequence[int]]) -> "Side":
        """Flatten lists of ids."""
        starts = np.zeros(len(sentences) + 1, dtype=np.int64)
        np.cumsum([len(sentence) for sentence in sentences], out=starts[1:])
        ids = np.fromiter((i for sentence in sentences for i in sentence), np.int32, count=int(starts[-1]))
        return cls(ids, starts)

    @classmethod
    def open(cls, stem: Path, dtype: str) -> "Side":
        """Map the two files that `SideWriter` wrote into memory; pages are read when they are used."""
        return cls(
            _mapped(stem.with_name(f"{stem.name}.ids"), dtype), _mapped(stem.with_name(f"{stem.name}.starts"), "int64")
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> list[int]:
        ids: list[int] = self.ids[self.starts[i] : self.starts[i + 1]].tolist()
        return ids

    def padded(self, indices: Indices, pad_id: int) -> NDArray[np.int64]:
        """Some sentences as rows of one array, filled up with `pad_id`; (0, 1) of none."""
        starts, lengths = self.starts[indices], self.lengths(indices)
        columns = np.arange(lengths.max(initial=0) if len(indices) else 1)
        is_token = columns < lengths[:, None]
        rows = np.full(is_token.shape, pad_id, np.int64)
        rows[is_token] = self.ids[(starts[:, None] + columns)[is_token]]
        return rows

    def text(self, i: int) -> str:
        """Sentence i of a side that holds texts."""
        return self.ids[self.starts[i] : self.starts[i + 1]].tobytes().decode()

    def release_pages(self) -> None:
        """Release the memory of the pages that were read; when used again, they are read from the file again."""
        for mapped in (self.ids, self.starts):
            if isinstance(mapped.base, memoryview) and isinstance(mapped.base.obj, mmap.mmap):
                mapped.base.obj.madvise(mmap.MADV_DONTNEED)

    def lengths(self, indices: Indices) -> NDArray[np.int32]:
        """How many ids each of these sentences has."""
        return (self.starts[indices + 1] - self.starts[indices]).astype(np.int32)

    def length_quantile(self, share: float) -> int:
        """The length that this share of the sentences does not exceed; with 1, the longest."""
        counts = np.zeros(1, np.int64)
        for begin in range(0, len(self), CHUNK_LENGTHS):
            chunk = np.bincount(np.diff(self.starts[begin : begin + CHUNK_LENGTHS + 1]), minlength=len(counts))
            chunk[: len(counts)] += counts
            counts = chunk
        return int(np.searchsorted(counts.cumsum(), share * len(self)))


class FlatSentences(NamedTuple):
    """Sentences as a `SideWriter` stores them: the bytes of all ids, and the number of ids of each sentence."""

    ids: bytes
    lengths: "array[int]"


def flatten(sentences: Sequence[Sequence[int]], dtype: str) -> FlatSentences:
    """Lists of ids, one after another."""
    ids = np.fromiter((i for sentence in sentences for i in sentence), dtype)
    return FlatSentences(ids.tobytes(), array("i", map(len, sentences)))


def flatten_texts(texts: Sequence[str]) -> FlatSentences:
    """Texts, one after another, as bytes of UTF-8."""
    encoded = [text.encode() for text in texts]
    return FlatSentences(b"".join(encoded), array("i", map(len, encoded)))


class SideWriter:
    """Appends sentences to the two files of a `Side`; keeps only their lengths in memory."""

    def __init__(self, stem: Path) -> None:
        self._lengths = array("i")
        self._ids = stem.with_name(f"{stem.name}.ids").open("wb")
        self._starts = stem.with_name(f"{stem.name}.starts")

    def add(self, sentences: FlatSentences) -> None:
        """Append sentences."""
        self._lengths.extend(sentences.lengths)
        self._ids.write(sentences.ids)

    def close(self) -> None:
        _flush(self._ids)
        starts = np.zeros(len(self._lengths) + 1, dtype=np.int64)
        np.cumsum(np.frombuffer(self._lengths, np.int32), out=starts[1:])
        with self._starts.open("wb") as file:
            file.write(starts.data)
            _flush(file)


@contextmanager
def open_writers(folder: Path, part: str) -> Iterator[tuple[SideWriter, SideWriter]]:
    """A writer for each side of `part`; their files are complete when the block ends."""
    with ExitStack() as stack:
        writers = [SideWriter(folder / f"{part}.{side}") for side in SIDES]
        for writer in writers:
            stack.callback(writer.close)
        yield writers[0], writers[1]


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    """Sentence pairs as ids.

    `weights` has, for each corpus, where its pairs end and how often each occurs in an epoch. `resample`,
    if set, segments pairs by subword sampling: their indices and the epoch → the ids of both sides.
    """

    source: Side
    target: Side
    weights: tuple[tuple[int, float], ...] = ()
    resample: Callable[[Sequence[int], int], tuple[list[list[int]], list[list[int]]]] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def longest(self) -> int:
        """The tokens of the longest sentence of either side."""
        return max(side.length_quantile(1) for side in (self.source, self.target))

    def epoch_tokens(self) -> int:
        """The tokens of the longer side in an epoch, padding not included."""
        ends, weights = zip(*(self.weights or ((len(self), 1.0),)), strict=True)
        sides = (self.source, self.target)
        return round(max(float(np.diff(side.starts[[0, *ends]]) @ weights) for side in sides))


def open_sides(folder: Path, part: str, dtype: str) -> tuple[Side, Side]:
    """Both sides of `part`, as `open_writers` wrote them."""
    return Side.open(folder / f"{part}.source", dtype), Side.open(folder / f"{part}.target", dtype)


class EncodedIds(NamedTuple):
    """The ids of both sides, and the indices of the pairs that are neither empty nor too long."""

    sources: list[list[int]]
    targets: list[list[int]]
    kept: list[int]


def encode_within(
    pairs: Sequence[Pair], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, *, max_length: int
) -> EncodedIds:
    """The ids of all pairs, and which of them have no empty side and at most `max_length` ids on either."""
    sources = source_tokenizer.encode_all([pair.source for pair in pairs])
    targets = target_tokenizer.encode_all([pair.target for pair in pairs])
    kept = [
        i
        for i, pair in enumerate(pairs)
        if pair.source and pair.target and max(len(sources[i]), len(targets[i])) <= max_length
    ]
    return EncodedIds(sources, targets, kept)


def encode_pairs(
    pairs: Sequence[Pair], tokenizer: Tokenizer, target_tokenizer: Tokenizer | None = None, *, max_length: int
) -> EncodedPairs:
    """Pairs as ids, in memory, without those that `encode_within` does not keep.

    Both sides are encoded by `tokenizer` unless the target has another.
    """
    ids = encode_within(pairs, tokenizer, target_tokenizer or tokenizer, max_length=max_length)
    return EncodedPairs(
        Side.from_sentences([ids.sources[i] for i in ids.kept]), Side.from_sentences([ids.targets[i] for i in ids.kept])
    )


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)
