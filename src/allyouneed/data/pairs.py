"""Sentence pairs: single pairs as readers yield them, and all pairs of a part, in memory or on disk.

Each side is two arrays: all ids, and where each sentence starts. Texts are stored in the same way, as the bytes of
UTF-8. Files are memory-mapped.
"""

import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..machine.files import flush_to_disk
from ..text.lines import NOT_UTF8, windows_remedy

if TYPE_CHECKING:
    from ..text.vocabulary import Vocabulary


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


class Fault(NamedTuple):
    """A line that holds no pair, counted from 1, and the reason. `lines` is the number of lines skipped because of it.

    `file` is the file of the line, if the source consists of several files.
    """

    line: int
    reason: str
    lines: int = 1
    file: str = ""

    def message(self, name: str) -> str:
        """Say which line was skipped and why. `name` is the name of the file."""
        return f"{name}, line {self.line} {f'of {self.file} ' if self.file else ''}{self.reason}"

    def remedy(self, name: str) -> str:
        """Advise what to do about a line that is not UTF-8; "" for other faults."""
        return f"; {windows_remedy(self.file or name)}" if NOT_UTF8 in self.reason else ""


class LeftOut(NamedTuple):
    """A row of a table that is left out on purpose, such as totals: its line and its text."""

    line: int
    text: str

    def message(self, name: str) -> str:
        """Say in one line which row was left out. `name` is the name of the source."""
        return f"{name}, line {self.line} is left out, as totals are: {self.text}"


Rows = Iterator[Pair | Fault | LeftOut]


Indices = NDArray[np.integer[Any]]

CHUNK = 10_000  # pairs in memory as texts
CHUNK_LENGTHS = 1_000_000  # sentences whose lengths are counted at once

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Side:
    """The sentences of one side, one after another in `ids`; sentence i is ids[starts[i]:starts[i + 1]]."""

    ids: NDArray[Any]
    starts: NDArray[np.int64]

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sequence[int]], dtype: str = "int32") -> "Side":
        """Store lists of ids in two arrays."""
        return cls(np.fromiter(chain.from_iterable(sentences), dtype), _starts(list(map(len, sentences))))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "Side":
        """Store texts in two arrays, as bytes of UTF-8."""
        encoded = [text.encode() for text in texts]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), _starts(list(map(len, encoded))))

    @classmethod
    def open(cls, path: Path, dtype: str) -> "Side":
        """Map the two files that `writing_pairs` wrote into memory. Pages are read when they are used."""
        return cls(
            _mapped(path.with_name(f"{path.name}.ids"), dtype), _mapped(path.with_name(f"{path.name}.starts"), "int64")
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> list[int]:
        ids: list[int] = self.ids[self.starts[i] : self.starts[i + 1]].tolist()
        return ids

    def select(self, indices: Indices) -> "Side":
        """Copy the sentences with these indices into memory."""
        lengths = self.lengths(indices)
        starts = _starts(lengths)
        return Side(self.ids[np.repeat(self.starts[indices] - starts[:-1], lengths) + np.arange(starts[-1])], starts)

    def texts(self) -> list[str]:
        """Decode all sentences of a side that holds texts."""
        content = self.ids.tobytes()
        return [content[start:end].decode() for start, end in pairwise(self.starts.tolist())]

    def padded(self, indices: Indices, pad_id: int) -> NDArray[np.int64]:
        """Return these sentences as the rows of an array, padded with `pad_id`.

        Without sentences, the array's shape is (0, 1).
        """
        starts = self.starts[indices]
        lengths = self.lengths(indices)
        columns = np.arange(lengths.max(initial=0) if len(indices) else 1)
        is_token = columns < lengths[:, None]
        rows = np.full(is_token.shape, pad_id, np.int64)
        rows[is_token] = self.ids[(starts[:, None] + columns)[is_token]]
        return rows

    def release_pages(self) -> None:
        """Free the memory of the pages that were read. They are read from the file again when they are needed."""
        for mapped in (self.ids, self.starts):
            if isinstance(mapped.base, memoryview) and isinstance(mapped.base.obj, mmap.mmap):
                mapped.base.obj.madvise(mmap.MADV_DONTNEED)

    def lengths(self, indices: Indices) -> NDArray[np.int32]:
        """Count the ids of each sentence in `indices`."""
        return (self.starts[indices + 1] - self.starts[indices]).astype(np.int32)

    def length_quantile(self, share: float) -> int:
        """Return the length that `share` of the sentences do not exceed. A share of 1 gives the longest."""
        counts = np.zeros(1, np.int64)
        for begin in range(0, len(self), CHUNK_LENGTHS):
            chunk = np.bincount(np.diff(self.starts[begin : begin + CHUNK_LENGTHS + 1]), minlength=len(counts))
            chunk[: len(counts)] += counts
            counts = chunk
        return int(np.searchsorted(counts.cumsum(), share * len(self)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentence pairs, stored as ids or as texts."""

    source: Side
    target: Side

    @staticmethod
    def from_texts(pairs: Iterable[Pair]) -> "Pairs":
        """Store the texts of pairs, as bytes of UTF-8."""
        texts = list(zip(*pairs, strict=True)) or [(), ()]
        return Pairs(*map(Side.from_texts, texts))

    @staticmethod
    def open(folder: Path, part: str, dtype: str) -> "Pairs":
        """Open the files that `writing_pairs` wrote for a part."""
        return Pairs(Side.open(folder / f"{part}.source", dtype), Side.open(folder / f"{part}.target", dtype))

    def __len__(self) -> int:
        return len(self.source)

    def chunks(self, indices: Indices) -> Iterator["Pairs"]:
        """Yield the pairs with these indices, with a few thousand in memory at a time."""
        for begin in range(0, len(indices), CHUNK):
            chunk = indices[begin : begin + CHUNK]
            yield Pairs(self.source.select(chunk), self.target.select(chunk))
            self.release_pages()

    def texts(self, indices: Indices | None = None) -> Iterator[Pair]:
        """Yield the texts of the pairs with these indices, or of all pairs, with few in memory at a time.

        The pairs must be stored as texts.
        """
        for chunk in self.chunks(np.arange(len(self)) if indices is None else indices):
            yield from map(Pair, chunk.source.texts(), chunk.target.texts())

    def release_pages(self) -> None:
        """Free the memory of the pages that were read, as `Side.release_pages` does."""
        self.source.release_pages()
        self.target.release_pages()


@dataclass(frozen=True, slots=True)
class EncodedPairs(Pairs):
    """Sentence pairs as ids.

    `weights` has two numbers for each corpus: where its pairs end, and how often each pair occurs in an epoch. If
    `resample` is set, it maps indices and an epoch to the ids of both sides, for subword sampling or made-up pairs.
    """

    weights: tuple[tuple[int, float], ...] = ()
    resample: Callable[[Indices, int], Pairs] | None = None

    def longest(self) -> int:
        """Return the number of tokens in the longest sentence of either side."""
        return max(side.length_quantile(1) for side in (self.source, self.target))

    def epoch_tokens(self) -> int:
        """Count the tokens of an epoch on the longer side, without padding."""
        ends, weights = zip(*(self.weights or ((len(self), 1.0),)), strict=True)
        sides = (self.source, self.target)
        return round(max(float(np.diff(side.starts[[0, *ends]]) @ weights) for side in sides))


def encode_within(
    pairs: Sequence[Pair], vocabulary: "Vocabulary", max_length: int, dtype: str = "int32"
) -> tuple[Pairs, list[int]]:
    """Encode the pairs that have no empty side and at most `max_length` ids per side. Also return their indices."""
    sources = vocabulary.source.encode_all([pair.source for pair in pairs])
    targets = vocabulary.target.encode_all([pair.target for pair in pairs])
    kept = [i for i, pair in enumerate(pairs) if all(pair) and max(len(sources[i]), len(targets[i])) <= max_length]
    source, target = (Side.from_sentences([ids[i] for i in kept], dtype) for ids in (sources, targets))
    return Pairs(source, target), kept


def encode_pairs(pairs: Sequence[Pair], vocabulary: "Vocabulary", *, max_length: int) -> EncodedPairs:
    """Encode pairs in memory. Leaves out pairs with an empty or too long side, as `encode_within` does."""
    ids, _ = encode_within(pairs, vocabulary, max_length)
    return EncodedPairs(ids.source, ids.target)


@contextmanager
def writing_pairs(folder: Path, part: str) -> Iterator[Callable[[Pairs], None]]:
    """Make a function that appends pairs to the files of `part`. The files are complete when the `with` block ends.

    Only the lengths of the sentences are kept in memory.
    """
    paths = [folder / f"{part}.source", folder / f"{part}.target"]
    lengths = [array("i"), array("i")]
    with ExitStack() as stack:
        files = [stack.enter_context(path.with_name(f"{path.name}.ids").open("wb")) for path in paths]

        def append(pairs: Pairs) -> None:
            for side, file, counted in zip((pairs.source, pairs.target), files, lengths, strict=True):
                counted.frombytes(np.diff(side.starts).astype(np.int32).tobytes())
                file.write(side.ids.data)

        yield append
        for path, counted in zip(paths, lengths, strict=True):
            starts = stack.enter_context(path.with_name(f"{path.name}.starts").open("wb"))
            starts.write(_starts(np.frombuffer(counted, np.int32)).data)
            files.append(starts)
        for file in files:
            flush_to_disk(file)


def chunks(items: Iterable[_T], size: int = 0) -> Iterator[list[_T]]:
    """Yield lists of `size` items; 0 means a few thousand. The last list may be shorter."""
    source = iter(items)
    while chunk := list(islice(source, size or CHUNK)):
        yield chunk


def stride(length: int, most: int) -> int:
    """Return the step of a slice that takes at most `most` of `length` items, evenly spaced."""
    return max(1, -(-length // most))


def _starts(lengths: Sequence[int] | NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the index where each sentence starts in the array of all ids, and the index where the last one ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)
