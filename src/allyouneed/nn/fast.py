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
    """Room for the keys and values of words to come, (B, H, room, K) each; `used` counts those there."""

    __slots__ = ("keys", "used", "values")

    def __init__(self, keys: Tensor, values: Tensor, used: int) -> None:
        self.keys, self.values, self.used = keys, values, used

    def append(self, keys: Tensor, values: Tensor, *, after: int) -> "Pool":
        """A pool whose words `after` … are these, (B, H, n, K). Those before are shared, not copied, if possible."""
        end = after + keys.size(2)
        pool = self
        if self.used != after or end > self.keys.size(2):  # another state wrote here already, or no room is left
            room = max(end, 2 * after, 64)
            pool = Pool(_with_room(self.keys, after, room), _with_room(self.values, after, room), after)
        pool.keys[:, :, after:end] = keys
        pool.values[:, :, after:end] = values
        pool.used = end
        return pool


def _with_room(words: Tensor, used: int, room: int) -> Tensor:
    grown = words.new_empty(*words.shape[:2], room, words.size(3))
    grown[:, :, :used] = words[:, :, :used]
    return grown


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
            pools=tuple(_kept(pool, sentences, self.pooled) for pool in self.pools),
            hypotheses=each * sentences.size(0),
            theirs=theirs,
        )


def _kept(pool: Pool, sentences: Tensor, used: int) -> Pool:
    return Pool(
        pool.keys[:, :, :used].index_select(0, sentences), pool.values[:, :, :used].index_select(0, sentences), used
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
        x = torch.add(self.source_position[:length], F.embedding(source, self.source_table), alpha=self.scale)
        for block in self.encoder:
            x = block(x, padding)
        x = self.encoder_norm(x)
        memory = tuple(block.offer(x) for block in self.decoder)
        pools = tuple(Pool(keys[:, :, :0], values[:, :, :0], 0) for keys, values in memory)
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
        x = torch.add(self.target_position[state.length], F.embedding(last, self.target_table), alpha=self.scale)
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


class _Heads:
    """The sizes of a `MultiHeadAttention`, and its equation 1 between maps that others make."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        self.heads = attention.heads
        self.keys, self.values = attention.key.out_features, attention.value.out_features

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)  # (B, L, H·K) → (B, H, L, K)

    @staticmethod
    def look(query: Tensor, keys: Tensor, values: Tensor, shut_off: Tensor | None) -> Tensor:
        seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=shut_off)
        return seen.transpose(1, 2).flatten(2)  # (B, H, T, K) → (B, T, H·K)


class _Around:
    """Add & norm: see residual.py."""

    def __init__(self, residual: Residual) -> None:
        self.norm, self.first = residual.norm, residual.norm_first
        self.gain, self.bias, self.eps = residual.norm.gain.detach(), residual.norm.bias.detach(), residual.norm.eps

    def before(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps) if self.first else x

    def after(self, x: Tensor, more: Tensor) -> Tensor:
        x = more.add_(x)
        return x if self.first else F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class _FastFeedForward:
    def __init__(
        self, feed_forward: FeedForward, around: Residual, make: Callable[[Tensor, Tensor | None], Map]
    ) -> None:
        self.inner, self.outer = _joined(make, feed_forward.inner), _joined(make, feed_forward.outer)
        self.activation = torch.relu_ if feed_forward.activation is F.relu else feed_forward.activation
        self.around = _Around(around)

    def __call__(self, x: Tensor) -> Tensor:
        return self.around.after(x, self.outer(self.activation(self.inner(self.around.before(x)))))


class _FastEncoderBlock:
    def __init__(self, block: EncoderBlock, make: Callable[[Tensor, Tensor | None], Map]) -> None:
        attention = block.attention
        self.heads, self.around = _Heads(attention), _Around(block.around_attention)
        self.all_three = _joined(make, attention.query, attention.key, attention.value)
        self.widths = [self.heads.keys, self.heads.keys, self.heads.values]
        self.output = _joined(make, attention.output)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.around_feed_forward, make)

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        heads = self.heads
        query, key, value = torch.split(self.all_three(self.around.before(x)), self.widths, -1)
        seen = heads.look(heads.split(query), heads.split(key), heads.split(value), padding)
        return self.feed_forward(self.around.after(x, self.output(seen)))


class _FastDecoderBlock:
    def __init__(self, block: DecoderBlock, make: Callable[[Tensor, Tensor | None], Map]) -> None:
        own, cross = block.self_attention, block.cross_attention
        self.heads = _Heads(own)
        self.widths = [self.heads.keys, self.heads.keys, self.heads.values]
        self.around_own, self.around_cross = _Around(block.around_self_attention), _Around(block.around_cross_attention)
        self.all_three = _joined(make, own.query, own.key, own.value)
        self.own_output = _joined(make, own.output)
        self.query, self.cross_output = _joined(make, cross.query), _joined(make, cross.output)
        self.keys_and_values = _joined(make, cross.key, cross.value)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.around_feed_forward, make)

    def offer(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The memory (B, S, D), projected once for all words."""
        keys, values = torch.split(self.keys_and_values(memory), self.widths[1:], -1)
        return self.heads.split(keys).contiguous(), self.heads.split(values).contiguous()

    def __call__(
        self,
        x: Tensor,
        pool: Pool,
        pooled: int,
        mask: Tensor | None,
        memory: tuple[Tensor, Tensor],
        padding: Tensor | None,
    ) -> tuple[Tensor, Pool]:
        heads = self.heads
        query, key, value = torch.split(self.all_three(self.around_own.before(x)), self.widths, -1)
        pool = pool.append(heads.split(key), heads.split(value), after=pooled)
        keys, values = pool.keys[:, :, : pool.used], pool.values[:, :, : pool.used]
        x = self.around_own.after(x, self.own_output(heads.look(heads.split(query), keys, values, mask)))
        query = heads.split(self.query(self.around_cross.before(x)))
        x = self.around_cross.after(x, self.cross_output(heads.look(query, *memory, padding)))
        return self.feed_forward(x), pool
