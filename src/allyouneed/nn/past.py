"""The past of a search: the keys and values of words already written, and whose they are.

The past is a pool, one for a sentence. Each step adds the keys and values of all the sentence's
hypotheses at the end of it, and nothing in it ever moves: a mask remembers which of the words are
whose, and only that mask is reordered when the search drops some hypotheses and forks others.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Pool:
    """Room for the keys and values of words to come, side by side: (B, room, H·K + H·Kv); `used` counts those there."""

    def __init__(self, words: Tensor, used: int, *, heads: int, width: int) -> None:
        self.words, self.used, self.heads, self.width = words, used, heads, width
        self.keys, self.values = split(words[..., :width], heads), split(words[..., width:], heads)  # views

    @cached_property
    def array(self) -> NDArray[np.float32]:
        """The same memory, all of it, (B, room, H·K + H·Kv)."""
        return self.words.numpy()

    def append(self, words: Tensor, *, after: int) -> "Pool":
        """A pool whose words `after` … are these, (B, n, H·K + H·Kv). Those before are shared, if possible."""
        count = words.size(1)
        pool = self.ready(count, after=after)
        pool.words.narrow(1, after, count).copy_(words)
        return pool

    def ready(self, count: int, *, after: int) -> "Pool":
        """The same for whoever writes the `count` words himself."""
        pool = self
        if self.used != after or after + count > self.words.size(1):  # others wrote here already, or no room is left
            pool = self._copied(after, room=max(after + count, 2 * after, 64))
        pool.used = after + count
        return pool

    def kept(self, sentences: Tensor, used: int) -> "Pool":
        """The pool of these sentences alone, with the first `used` words and as much room."""
        words = self.words.new_empty(sentences.size(0), *self.words.shape[1:])
        torch.index_select(self.words[:, :used], 0, sentences, out=words[:, :used])
        return Pool(words, used, heads=self.heads, width=self.width)

    def _copied(self, used: int, *, room: int) -> "Pool":
        words = self.words.new_empty(self.words.size(0), room, self.words.size(2))
        words[:, :used] = self.words[:, :used]
        return Pool(words, used, heads=self.heads, width=self.width)


def split(x: Tensor, heads: int) -> Tensor:
    """(B, L, H·K) → (B, H, L, K)."""
    return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class FastState:
    """What a step needs of the past: N hypotheses of B sentences, N/B side by side for each.

    `memory` is for each block a pool of the source, and `padding` what to add to a score so that
    nobody looks at padding, (B, 1, 1, S), or None where there is none. Of the `pooled` words of
    a sentence, `theirs` does the same for those that are not a hypothesis's own: (N, pooled), or None
    where each sentence has one hypothesis and all words are its own. `length` counts the words of one.
    """

    memory: tuple[Pool, ...]
    padding: Tensor | None
    pools: tuple[Pool, ...]
    hypotheses: int
    pooled: int = 0
    theirs: Tensor | None = None
    length: int = 0

    @property
    def sentences(self) -> int:
        """How many there are, B."""
        return self.memory[0].words.size(0)

    def reorder(self, hypotheses: Tensor) -> "FastState":
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        count = hypotheses.size(0)
        if count == self.hypotheses == self.sentences:
            return self  # one a sentence, before and after
        if self.theirs is None:
            theirs = self.memory[0].words.new_zeros(count, self.pooled)
        else:
            theirs = self.theirs.index_select(0, hypotheses)
        return FastState(self.memory, self.padding, self.pools, count, self.pooled, theirs, self.length)

    def keep(self, sentences: Tensor) -> "FastState":
        """The state of these sentences alone, with all their hypotheses."""
        before, each = self.sentences, self.hypotheses // self.sentences
        theirs = self.theirs
        if theirs is not None:
            theirs = theirs.view(before, each, -1).index_select(0, sentences).flatten(0, 1)
        return replace(
            self,
            memory=tuple(pool.kept(sentences, pool.used) for pool in self.memory),
            padding=None if self.padding is None else self.padding.index_select(0, sentences),
            pools=tuple(pool.kept(sentences, self.pooled) for pool in self.pools),
            hypotheses=each * sentences.size(0),
            theirs=theirs,
        )
