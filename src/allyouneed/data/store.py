"""Encoded pairs, stored flat: all ids of a side in one array, and where each sentence starts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..text.corpus import Pair
from ..text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Side:
    """The sentences of one language. `ids` are one after another; sentence i is ids[starts[i]:starts[i + 1]]."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Side":
        """Flatten lists of ids."""
        starts = np.zeros(len(sentences) + 1, dtype=np.int64)
        np.cumsum([len(sentence) for sentence in sentences], out=starts[1:])
        ids = np.fromiter((i for sentence in sentences for i in sentence), np.int32, count=int(starts[-1]))
        return cls(ids, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> list[int]:
        return list(map(int, self.ids[self.starts[i] : self.starts[i + 1]]))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many ids each sentence has."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    """Sentence pairs as ids. `dropped` counts the pairs left out as empty or too long."""

    source: Side
    target: Side
    dropped: int

    def __len__(self) -> int:
        return len(self.source)


def encode_pairs(pairs: Sequence[Pair], tokenizer: Tokenizer, *, max_length: int) -> EncodedPairs:
    """Pairs as ids. One with an empty side, or with more than `max_length` ids on a side, is left out."""
    sources = tokenizer.encode_all([pair.source for pair in pairs])
    targets = tokenizer.encode_all([pair.target for pair in pairs])
    kept = [
        i
        for i, pair in enumerate(pairs)
        if pair.source and pair.target and max(len(sources[i]), len(targets[i])) <= max_length
    ]
    return EncodedPairs(
        source=Side.of([sources[i] for i in kept]),
        target=Side.of([targets[i] for i in kept]),
        dropped=len(pairs) - len(kept),
    )
