"""The KV cache of a search, and a mask that says which of its entries each hypothesis may attend to.

A sentence has one cache for all its hypotheses. Each step appends the keys and values of their newest tokens, and
no entry ever moves: the ancestry mask says which entries are a hypothesis's own tokens, and when the search drops
some hypotheses and forks others, only that mask is reordered.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


class KVCache:
    """Keys and values side by side, (B, capacity, H·K + H·Kv), of which the first `used` tokens are filled."""

    def __init__(self, tokens: Tensor, used: int, *, heads: int, width: int) -> None:
        self.tokens, self.used, self.heads, self.width = tokens, used, heads, width
        self.keys = split_heads(tokens[..., :width], heads)  # a view, as are the values
        self.values = split_heads(tokens[..., width:], heads)

    def append(self, tokens: Tensor, *, after: int) -> "KVCache":
        """A cache with these tokens, (B, n, H·K + H·Kv), after the first `after`; the memory is shared if possible."""
        count = tokens.size(1)
        cache = self.reserve(count, after=after)
        cache.tokens.narrow(1, after, count).copy_(tokens)
        return cache

    def reserve(self, count: int, *, after: int) -> "KVCache":
        """As `append`, with `count` tokens that the caller writes into the memory of `tokens`."""
        cache = self
        if self.used != after or after + count > self.tokens.size(1):  # another state has written here, or it is full
            everything = torch.arange(self.tokens.size(0), device=self.tokens.device)
            cache = self.select(everything, max(after + count, 2 * after, 64), after)
        cache.used = after + count
        return cache

    def select(self, sentences: Tensor, capacity: int, used: int) -> "KVCache":
        """The cache of these sentences alone, with the first `used` tokens."""
        tokens = self.tokens.new_empty(sentences.size(0), capacity, self.tokens.size(2))
        torch.index_select(self.tokens[:, :used], 0, sentences, out=tokens[:, :used])
        return KVCache(tokens, used, heads=self.heads, width=self.width)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, L, H·K) → (B, H, L, K)."""
    return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class CachedState:
    """The state of N hypotheses of B sentences, N/B side by side for each.

    `memory_caches` and `caches` have one KV cache for each block: of the source, and of the tokens so far. `padding`
    is the attention bias that masks padding of the source, (B, 1, 1, S), or None where there is none. `ancestry_mask`
    is the attention bias that masks the `cached` tokens of other hypotheses, (N, cached), or None where each
    sentence has one hypothesis. `length` counts the steps whose tokens the caches hold. `rows` (B,) are the rows of the
    sentences in the caches, which may have others, too; it is None where the caches have these sentences alone, in
    order.
    """

    memory_caches: tuple[KVCache, ...]
    padding: Tensor | None
    caches: tuple[KVCache, ...]
    hypotheses: int
    cached: int = 0
    ancestry_mask: Tensor | None = None
    length: int = 0
    rows: Tensor | None = None

    @property
    def sentences(self) -> int:
        """How many there are, B."""
        return self.memory_caches[0].tokens.size(0) if self.rows is None else self.rows.size(0)

    @property
    def source_length(self) -> int:
        """That of the longest source, S."""
        return self.memory_caches[0].used if self.padding is None else self.padding.size(-1)

    def reorder(self, hypotheses: Tensor) -> "CachedState":
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        count = hypotheses.size(0)
        if count == self.hypotheses == self.sentences:
            return self  # one a sentence, before and after
        if self.ancestry_mask is None:
            mask = self.memory_caches[0].tokens.new_zeros(count, self.cached)
        else:
            mask = self.ancestry_mask.index_select(0, hypotheses)
        return CachedState(
            self.memory_caches,
            self.padding,
            self.caches,
            count,
            self.cached,
            mask,
            self.length,
            self.rows,
        )  # `replace` takes 10 µs of every step

    def keep(self, sentences: Tensor) -> "CachedState":
        """The state of these sentences alone, with all their hypotheses. Nothing of the caches is moved."""
        width, mask = self.hypotheses // self.sentences, self.ancestry_mask
        if mask is not None:
            mask = mask.view(self.sentences, width, -1).index_select(0, sentences).flatten(0, 1)
        return replace(
            self,
            padding=None if self.padding is None else self.padding.index_select(0, sentences),
            hypotheses=width * sentences.size(0),
            ancestry_mask=mask,
            rows=sentences if self.rows is None else self.rows.index_select(0, sentences),
        )

    def gather(self) -> "CachedState":
        """The same state with caches of these sentences alone, in order."""
        if self.rows is None:
            return self
        rows = self.rows
        return replace(
            self,
            memory_caches=tuple(cache.select(rows, cache.used, cache.used) for cache in self.memory_caches),
            caches=tuple(cache.select(rows, cache.tokens.size(1), self.cached) for cache in self.caches),
            rows=None,
        )
