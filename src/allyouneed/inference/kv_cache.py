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


class KVCache:
    """Room for the keys and values of words to come, side by side: (B, room, H·K + H·Kv); `used` counts those there."""

    def __init__(self, words: Tensor, used: int, *, heads: int, width: int) -> None:
        self.tokens, self.used, self.heads, self.width = words, used, heads, width
        self.keys, self.values = split_heads(words[..., :width], heads), split_heads(words[..., width:], heads)  # views

    @cached_property
    def array(self) -> NDArray[np.float32]:
        """The same memory, all of it, (B, room, H·K + H·Kv)."""
        return self.tokens.numpy()

    def append(self, words: Tensor, *, after: int) -> "KVCache":
        """A pool whose words `after` … are these, (B, n, H·K + H·Kv). Those before are shared, if possible."""
        count = words.size(1)
        pool = self.reserve(count, after=after)
        pool.tokens.narrow(1, after, count).copy_(words)
        return pool

    def reserve(self, count: int, *, after: int) -> "KVCache":
        """The same for whoever writes the `count` words himself."""
        pool = self
        if self.used != after or after + count > self.tokens.size(1):  # others wrote here already, or no room is left
            pool = self._copied(after, room=max(after + count, 2 * after, 64))
        pool.used = after + count
        return pool

    def select(self, sentences: Tensor, used: int) -> "KVCache":
        """The pool of these sentences alone, with the first `used` words and as much room."""
        words = self.tokens.new_empty(sentences.size(0), *self.tokens.shape[1:])
        torch.index_select(self.tokens[:, :used], 0, sentences, out=words[:, :used])
        return KVCache(words, used, heads=self.heads, width=self.width)

    def _copied(self, used: int, *, room: int) -> "KVCache":
        words = self.tokens.new_empty(self.tokens.size(0), room, self.tokens.size(2))
        words[:, :used] = self.tokens[:, :used]
        return KVCache(words, used, heads=self.heads, width=self.width)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, L, H·K) → (B, H, L, K)."""
    return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class CachedState:
    """What a step needs of the past: N hypotheses of B sentences, N/B side by side for each.

    `memory` is for each block a pool of the source, and `padding` what to add to a score so that
    nobody looks at padding, (B, 1, 1, S), or None where there is none. Of the `pooled` words of
    a sentence, `theirs` does the same for those that are not a hypothesis's own: (N, pooled), or None
    where each sentence has one hypothesis and all words are its own. `length` counts the words of one.
    """

    memory_caches: tuple[KVCache, ...]
    padding: Tensor | None
    caches: tuple[KVCache, ...]
    hypotheses: int
    cached: int = 0
    ancestry_mask: Tensor | None = None
    length: int = 0

    @property
    def sentences(self) -> int:
        """How many there are, B."""
        return self.memory_caches[0].tokens.size(0)

    def reorder(self, hypotheses: Tensor) -> "CachedState":
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        count = hypotheses.size(0)
        if count == self.hypotheses == self.sentences:
            return self  # one a sentence, before and after
        if self.ancestry_mask is None:
            theirs = self.memory_caches[0].tokens.new_zeros(count, self.cached)
        else:
            theirs = self.ancestry_mask.index_select(0, hypotheses)
        return CachedState(self.memory_caches, self.padding, self.caches, count, self.cached, theirs, self.length)

    def keep(self, sentences: Tensor) -> "CachedState":
        """The state of these sentences alone, with all their hypotheses."""
        before, each = self.sentences, self.hypotheses // self.sentences
        theirs = self.ancestry_mask
        if theirs is not None:
            theirs = theirs.view(before, each, -1).index_select(0, sentences).flatten(0, 1)
        return replace(
            self,
            memory_caches=tuple(pool.select(sentences, pool.used) for pool in self.memory_caches),
            padding=None if self.padding is None else self.padding.index_select(0, sentences),
            caches=tuple(pool.select(sentences, self.cached) for pool in self.caches),
            hypotheses=each * sentences.size(0),
            ancestry_mask=theirs,
        )
