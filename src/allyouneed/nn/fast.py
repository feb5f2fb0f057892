"""Figure 1 once more, written for translating all day: the same numbers, fewer and larger operations.

`Transformer` is the definition, and a test holds this file to it. What differs:

- Maps of the same vector are one product: queries, keys and values of self-attention; keys and
  values of the memory.
- The past is a pool, one for a sentence. Each step adds the keys and values of all the sentence's
  hypotheses at the end of it, and nothing in it ever moves: a mask remembers which of the words are
  whose, and only that mask is reordered when the search drops some hypotheses and forks others.
- Weights may be int8 (`int8.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import ConfigError, InputError
from .attention import MultiHeadAttention, shut
from .decoder import DecoderBlock
from .encoder import EncoderBlock
from .feedforward import FeedForward
from .int8 import Int8Map, can_int8
from .residual import Residual
from .transformer import Transformer

Precision = Literal["float32", "int8"]
Map = Callable[[Tensor], Tensor]  # (…, in) → (…, out)


def pick_precision(model: Transformer) -> Precision:
    """What "auto" means: int8 on an x86 processor for a projection of a million weights or more, else float32."""
    table = model.projection.table
    return "int8" if can_int8(table.device) and table.numel() >= 1_000_000 else "float32"


class Pool:
    """Room for the keys and values of words to come, side by side: (B, room, H·K + H·Kv); `used` counts those there."""

    __slots__ = ("heads", "keys", "used", "values", "width", "words")

    def __init__(self, words: Tensor, used: int, *, heads: int, width: int) -> None:
        self.words, self.used, self.heads, self.width = words, used, heads, width
        self.keys, self.values = split(words[..., :width], heads), split(words[..., width:], heads)  # views

    def append(self, words: Tensor, *, after: int) -> "Pool":
        """A pool whose words `after` … are these, (B, n, H·K + H·Kv). Those before are shared, if possible."""
        count = words.size(1)
        pool = self
        if self.used != after or after + count > self.words.size(1):  # others wrote here already, or no room is left
            pool = self._copied(after, room=max(after + count, 2 * after, 64))
        pool.words.narrow(1, after, count).copy_(words)
        pool.used = after + count
        return pool

    def kept(self, sentences: Tensor, used: int) -> "Pool":
        """The pool of these sentences alone, with the first `used` words and as much room."""
        words = self.words.new_empty(sentences.size(0), *self.words.shape[1:])
        words[:, :used] = self.words.narrow(1, 0, used).index_select(0, sentences)
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

    `memory` has each block's keys and values, (B, H, S, K), and `padding` what to add to a score so
    that nobody looks at padding, (B, 1, 1, S), or None where there is none. Of the `pooled` words of
    a sentence, `theirs` does the same for those that are not a hypothesis's own: (N, pooled), or None
    where each sentence has one hypothesis and all words are its own. `length` counts the words of one.
    """

    memory: tuple[tuple[Tensor, Tensor], ...]
    padding: Tensor | None
    pools: tuple[Pool, ...]
    hypotheses: int
    pooled: int = 0
    theirs: Tensor | None = None
    length: int = 0

    def reorder(self, hypotheses: Tensor) -> "FastState":
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        count = hypotheses.size(0)
        if count == self.hypotheses == self.memory[0][0].size(0):
            return self  # one a sentence, before and after
        if self.theirs is None:
            theirs = self.memory[0][0].new_zeros(count, self.pooled)
        else:
            theirs = self.theirs.index_select(0, hypotheses)
        return replace(self, hypotheses=count, theirs=theirs)

    def keep(self, sentences: Tensor) -> "FastState":
        """The state of these sentences alone, with all their hypotheses."""
        before = self.memory[0][0].size(0)
        each = self.hypotheses // before
        theirs = self.theirs
        if theirs is not None:
            theirs = theirs.view(before, each, -1).index_select(0, sentences).flatten(0, 1)
        return replace(
            self,
            memory=tuple((k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.memory),
            padding=None if self.padding is None else self.padding.index_select(0, sentences),
            pools=tuple(pool.kept(sentences, self.pooled) for pool in self.pools),
            hypotheses=each * sentences.size(0),
            theirs=theirs,
        )


class FastTransformer:
    """`model.start` and `model.step` of a trained `Transformer`, with weights in `precision`.

    In float32 its logits are those of `model` but for rounding. It takes a copy of the weights:
    training `model` further does not change it.
    """

    @torch.inference_mode()
    def __init__(self, model: Transformer, *, precision: str = "float32") -> None:
        if precision not in get_args(Precision):
            raise ConfigError(f'precision must be "auto", "float32" or "int8"; got {precision!r}')
        self.config, self.precision = model.config, cast(Precision, precision)
        make: Callable[[Tensor, Tensor | None], Map] = Int8Map if precision == "int8" else _FloatMap
        self.scale = math.sqrt(model.config.d_model)
        self.source_table = model.source_embedding.table.detach()
        self.target_table = model.target_embedding.table.detach()
        self.source_position = cast(Tensor, model.source_position.encoding).detach()
        self.target_position = cast(Tensor, model.target_position.encoding).detach()
        self.encoder = [_FastEncoderBlock(block, make) for block in model.encoder.layers]  # type: ignore[arg-type]
        self.decoder = [_FastDecoderBlock(block, make) for block in model.decoder.layers]  # type: ignore[arg-type]
        self.encoder_norm, self.decoder_norm = model.encoder.norm, model.decoder.norm
        self.projection = make(model.projection.table, None)

    def start(self, source: Tensor) -> FastState:
        """The state from which `step` writes a translation of the source (B, S)."""
        rows, length = source.shape
        if length > len(self.source_position):
            raise InputError(f"a sequence of {length} tokens is longer than max_length={len(self.source_position)}")
        real = source != self.config.pad_id
        padding = None if bool(real.all()) else shut(real, self.source_table.dtype)[:, None, None, :]
        x = torch.add(self.source_position[:length], torch.embedding(self.source_table, source), alpha=self.scale)
        for block in self.encoder:
            x = block(x, padding)
        x = self.encoder_norm(x)
        memory = tuple(block.offer(x) for block in self.decoder)
        pools = tuple(block.pool(x) for block in self.decoder)
        return FastState(memory, padding, pools, hypotheses=rows)

    def step(self, last: Tensor, state: FastState) -> tuple[Tensor, FastState]:
        """Logits of the next word, (N, V), after the `last` one, (N,), and the state with it in."""
        if state.length == len(self.target_position):
            raise InputError(f"a sequence of {state.length + 1} tokens is longer than max_length={state.length}")
        sentences = state.memory[0][0].size(0)
        each = state.hypotheses // sentences
        theirs = mask = None
        if each > 1:
            theirs = _with_own(state.theirs, sentences, each, self.target_table)
            mask = theirs.view(sentences, 1, each, -1)
        x = torch.add(self.target_position[state.length], torch.embedding(self.target_table, last), alpha=self.scale)
        x = x.view(sentences, each, -1)  # (N, D) → (B, N/B, D): a sentence's hypotheses as if they were positions
        pools = []
        for block, pool, memory in zip(self.decoder, state.pools, state.memory, strict=True):
            x, grown = block(x, pool, state.pooled, mask, memory, state.padding)
            pools.append(grown)
        logits = self.projection(self.decoder_norm(x).view(state.hypotheses, -1))
        return logits, FastState(
            state.memory, state.padding, tuple(pools), state.hypotheses, state.pooled + each, theirs, state.length + 1
        )


def _with_own(theirs: Tensor | None, sentences: int, each: int, like: Tensor) -> Tensor:
    """`theirs` with the newest word of each hypothesis added: its own to itself, shut to the others."""
    own = shut(torch.eye(each, dtype=torch.bool, device=like.device), like.dtype).repeat(sentences, 1)
    return own if theirs is None else torch.cat((theirs, own), 1)


class _FloatMap:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def _joined(make: Callable[[Tensor, Tensor | None], Map], *maps: nn.Linear) -> Map:
    """One map in place of several of the same vector: their results side by side."""
    if len(maps) == 1:
        return make(maps[0].weight, maps[0].bias)
    return make(torch.cat([part.weight for part in maps]), torch.cat([part.bias for part in maps]))


class _Around:
    """Add & norm: see residual.py."""

    def __init__(self, residual: Residual) -> None:
        self.first = residual.norm_first
        self.gain, self.bias, self.eps = residual.norm.gain.detach(), residual.norm.bias.detach(), residual.norm.eps
        self.shape = self.gain.shape

    def before(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.gain, self.bias, self.eps) if self.first else x

    def after(self, x: Tensor, more: Tensor) -> Tensor:
        more.add_(x)
        return more if self.first else torch.layer_norm(more, self.shape, self.gain, self.bias, self.eps)


class _FastFeedForward:
    def __init__(
        self, feed_forward: FeedForward, around: Residual, make: Callable[[Tensor, Tensor | None], Map]
    ) -> None:
        self.inner, self.outer = _joined(make, feed_forward.inner), _joined(make, feed_forward.outer)
        self.activation = torch.relu_ if feed_forward.activation is F.relu else feed_forward.activation
        self.around = _Around(around)

    def __call__(self, x: Tensor) -> Tensor:
        return self.around.after(x, self.outer(self.activation(self.inner(self.around.before(x)))))


class _FastSelfAttention:
    """Queries, keys and values of one vector by one product, with what stands around it."""

    def __init__(
        self, attention: MultiHeadAttention, around: Residual, make: Callable[[Tensor, Tensor | None], Map]
    ) -> None:
        self.heads, self.around = attention.heads, _Around(around)
        self.all_three = _joined(make, attention.query, attention.key, attention.value)
        self.output = _joined(make, attention.output)
        self.width = attention.key.out_features
        self.widths = [self.width, self.width + attention.value.out_features]

    def offer(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, L, K), and keys and values as a pool takes them, (B, L, H·K + H·Kv)."""
        query, words = self.all_three(self.around.before(x)).split_with_sizes(self.widths, -1)
        return split(query, self.heads), words

    def look(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        return self.around.after(x, self.output(attend(query, keys, values, mask)))


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Equation 1, its heads side by side again: → (B, T, H·Kv)."""
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask).transpose(1, 2).flatten(2)


class _FastEncoderBlock:
    def __init__(self, block: EncoderBlock, make: Callable[[Tensor, Tensor | None], Map]) -> None:
        self.attention = _FastSelfAttention(block.attention, block.around_attention, make)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.around_feed_forward, make)

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        own = self.attention
        query, words = own.offer(x)
        key, value = split(words[..., : own.width], own.heads), split(words[..., own.width :], own.heads)
        return self.feed_forward(own.look(x, query, key, value, padding))


class _FastDecoderBlock:
    def __init__(self, block: DecoderBlock, make: Callable[[Tensor, Tensor | None], Map]) -> None:
        cross = block.cross_attention
        self.self_attention = _FastSelfAttention(block.self_attention, block.around_self_attention, make)
        self.heads, self.width = cross.heads, cross.key.out_features
        self.query, self.output = _joined(make, cross.query), _joined(make, cross.output)
        self.keys_and_values = _joined(make, cross.key, cross.value)
        self.around_cross = _Around(block.around_cross_attention)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.around_feed_forward, make)

    def offer(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The memory (B, S, D), projected once for all words."""
        words = self.keys_and_values(memory)
        return split(words[..., : self.width], self.heads), split(words[..., self.width :], self.heads)

    def pool(self, memory: Tensor) -> Pool:
        """That of no words yet."""
        own = self.self_attention
        return Pool(memory.new_empty(memory.size(0), 0, own.widths[1]), 0, heads=own.heads, width=own.width)

    def __call__(
        self,
        x: Tensor,
        pool: Pool,
        pooled: int,
        mask: Tensor | None,
        memory: tuple[Tensor, Tensor],
        padding: Tensor | None,
    ) -> tuple[Tensor, Pool]:
        own, around = self.self_attention, self.around_cross
        query, words = own.offer(x)
        pool = pool.append(words, after=pooled)
        x = own.look(x, query, pool.keys.narrow(2, 0, pool.used), pool.values.narrow(2, 0, pool.used), mask)
        query = split(self.query(around.before(x)), self.heads)
        x = around.after(x, self.output(attend(query, *memory, padding)))
        return self.feed_forward(x), pool
