"""The KV cache of a search, and a mask that says which of its entries each hypothesis may attend to.

A sentence has one cache for all its hypotheses. Each step appends the keys and values of their newest tokens, and
no entry ever moves: the ancestry mask says which entries are a hypothesis's own tokens, and when the search drops
some hypotheses and forks others, only that mask is reordered. A sentence that joins a running batch masks the entries
before it came.
"""

from collections.abc import Sequence
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
            cache = self.copy(self.tokens.size(0), max(after + count, 2 * after, 64), after)
        cache.used = after + count
        return cache

    def select(self, sentences: Tensor, capacity: int, used: int, *, first: int = 0) -> "KVCache":
        """The cache of these sentences alone, with the tokens from `first` to `used`."""
        tokens = self.tokens.new_zeros(sentences.size(0), capacity, self.tokens.size(2))
        torch.index_select(self.tokens[:, first:used], 0, sentences, out=tokens[:, : used - first])
        return KVCache(tokens, used - first, heads=self.heads, width=self.width)

    def copy(self, sentences: int, capacity: int, used: int, *, first: int = 0) -> "KVCache":
        """A copy for at least as many sentences, with the tokens from `first` to `used`; the others are 0."""
        # A row that no sentence has is not written to. Who takes it later masks this, but a weight of 0 hides no NaN.
        tokens = self.tokens.new_zeros(sentences, capacity, self.tokens.size(2))
        tokens[: len(self.tokens), : used - first] = self.tokens[:, first:used]
        return KVCache(tokens, used - first, heads=self.heads, width=self.width)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, L, H·K) → (B, H, L, K)."""
    return x.view(x.size(0), x.size(1), heads, x.size(2) // heads).transpose(1, 2)


@dataclass(frozen=True, slots=True)
class CachedState:
    """The state of N hypotheses of B sentences, N/B side by side for each.

    `memory_caches` and `caches` have one KV cache for each block: of the source, and of the tokens so far. `padding`
    is the attention bias that masks padding of the source, (B, 1, 1, S), or None where there is none. `ancestry_mask`
    is the attention bias that masks the `cached` tokens of other hypotheses, (N, cached), or None where each
    sentence has one hypothesis. `length` counts the steps whose tokens the caches hold, and `joined` (B,) how many of
    them came before each sentence joined; it is None where all sentences began together. `rows` (B,) are the rows of
    the sentences in the caches, which may have others, too; it is None where the caches have these sentences alone, in
    order.
    """

    memory_caches: tuple[KVCache, ...]
    padding: Tensor | None
    caches: tuple[KVCache, ...]
    hypotheses: int
    cached: int = 0
    ancestry_mask: Tensor | None = None
    length: int = 0
    joined: Tensor | None = None
    rows: Tensor | None = None

    @property
    def sentences(self) -> int:
        """How many there are, B."""
        return self.memory_caches[0].tokens.size(0) if self.rows is None else self.rows.size(0)

    @property
    def source_length(self) -> int:
        """That of the longest source, S."""
        return self.memory_caches[0].used if self.padding is None else self.padding.size(-1)

    @property
    def positions(self) -> Tensor:
        """How many tokens the hypotheses of each sentence have, (B,)."""
        if self.joined is None:
            return torch.full((self.sentences,), self.length, device=self.memory_caches[0].tokens.device)
        return self.length - self.joined

    @property
    def longest(self) -> int:
        """The most tokens that any hypothesis has."""
        return self.length if self.joined is None else self.length - int(self.joined.min())

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
            self.joined,
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
            joined=None if self.joined is None else self.joined.index_select(0, sentences),
            rows=sentences if self.rows is None else self.rows.index_select(0, sentences),
        )

    def gather(self) -> "CachedState":
        """The same state with caches of these sentences alone, in order, and of no token that is masked for all."""
        if self.rows is None:
            return self
        first, mask, padding = 0 if self.joined is None else int(self.joined.min()), self.ancestry_mask, self.padding
        source_length = self.memory_caches[0].used
        if self.joined is not None and padding is not None:
            source_length = _visible_length(padding)
            padding = padding[..., :source_length].contiguous()
        skipped = first * (self.hypotheses // self.sentences)
        return CachedState(
            tuple(cache.select(self.rows, source_length, source_length) for cache in self.memory_caches),
            padding,
            tuple(cache.select(self.rows, cache.tokens.size(1), self.cached, first=skipped) for cache in self.caches),
            self.hypotheses,
            self.cached - skipped,
            None if mask is None else mask[:, skipped:],
            self.length - first,
            None if self.joined is None else self.joined - first,
        )

    def insert(self, newcomers: "CachedState", sentences: Sequence[int]) -> "CachedState":
        """The state in which sentence i of `newcomers`, a state before the first token, is number `sentences[i]`.

        Those that had such a number before are gone; numbers beyond the last are new. The memory of this state is
        written to, so this state must not be used any more.
        """
        before, count = self.sentences, max(self.sentences, max(sentences) + 1)
        width, tokens = self.hypotheses // before, self.memory_caches[0].tokens
        masked, chosen = torch.finfo(tokens.dtype).min, torch.tensor(sentences, device=tokens.device)
        joined = torch.full((count,), self.length, device=tokens.device)
        joined[:before] = 0 if self.joined is None else self.joined
        joined[chosen] = self.length
        first = int(joined.min())  # the steps before it are masked for all
        source_length, new_length = self.source_length, newcomers.source_length
        padding = tokens.new_full((count, 1, 1, max(source_length, new_length)), masked)
        padding[:before, ..., :source_length] = 0 if self.padding is None else self.padding
        padding[chosen] = masked
        padding[chosen, ..., :new_length] = 0 if newcomers.padding is None else newcomers.padding
        source_length = _visible_length(padding)
        mask = tokens.new_full((count, width, self.cached), masked)
        mask[:before] = 0 if self.ancestry_mask is None else self.ancestry_mask.view(before, width, -1)
        mask[chosen] = masked
        rows = self._rows_for(count)
        size = len(tokens) if len(tokens) > max(rows) else max(rows) + 1 + len(tokens) // 2  # spare, for those to come
        memory_caches, caches = self.memory_caches, self.caches
        if size > len(tokens) or source_length > tokens.size(1):
            used = min(source_length, self.source_length)
            memory_caches = tuple(cache.copy(size, source_length, used) for cache in memory_caches)
        if size == len(tokens) and 2 * first < self.length:
            first = 0  # copying the others would take longer than skipping these
        skipped = first * width
        if size > len(tokens) or first:
            caches = tuple(cache.copy(size, cache.tokens.size(1), self.cached, first=skipped) for cache in caches)
        new_rows = torch.tensor([rows[number] for number in sentences], device=tokens.device)
        for cache, new in zip(memory_caches, newcomers.memory_caches, strict=True):
            cache.tokens[new_rows, :new_length] = new.tokens
            cache.used = source_length
        in_order = rows == list(range(size))
        return CachedState(
            memory_caches,
            padding[..., :source_length].contiguous(),
            caches,
            count * width,
            self.cached - skipped,
            mask[..., skipped:].flatten(0, 1),
            self.length - first,
            joined - first,
            None if in_order else torch.tensor(rows, device=tokens.device),
        )

    def _rows_for(self, count: int) -> list[int]:
        """The row in the caches of each of `count` sentences: those that there are, then free ones, then new ones."""
        rows = list(range(self.sentences)) if self.rows is None else self.rows.tolist()
        taken = set(rows)
        free = (row for row in range(len(rows) + count) if row not in taken)
        return rows + [next(free) for _ in range(count - len(rows))]


def _visible_length(padding: Tensor) -> int:
    """The length of the longest source."""
    return int((padding >= 0).any(0).nonzero()[:, -1].max()) + 1
