"""Figure 1 once more, written for translating all day: the same numbers, fewer and larger operations.

`Transformer` is the definition, and a test holds this file to it. What differs:

- Maps of the same vector are one product: queries, keys and values of self-attention; keys and
  values of the memory.
- The past is a pool in which nothing ever moves (`past.py`).
- Weights may be int8 (`int8.py`).
- The step may be compiled (`compiled.py`).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import ConfigError, InputError, MissingExtraError
from ..nn.attention import MultiHeadAttention, attention_bias
from ..nn.decoder import DecoderBlock, DecoderState
from ..nn.embedding import refuse_unknown_ids
from ..nn.encoder import EncoderBlock
from ..nn.feedforward import FeedForward
from ..nn.residual import Residual
from ..nn.transformer import Transformer, require_rows
from .custom_parts import find_custom_part
from .kv_cache import CachedState, KVCache, split_heads
from .quantization import Int8Linear, supports_int8

if TYPE_CHECKING:
    from .compiled import CompiledBlocks

Precision = Literal["float32", "int8"]
AnyState = CachedState | DecoderState  # the latter of a model that is run as it is
LinearMap = Callable[[Tensor], Tensor]  # (…, in) → (…, out)
TopContinuations = Callable[
    [list[list[float]], Tensor, int], tuple[list[list[float]], list[list[int]], list[list[int]]]
]


def pick_precision(model: Transformer) -> Precision:
    """What "auto" means: int8 on an x86 processor for a projection of a million weights or more, else float32.

    A model with parts of its own stays float32.
    """
    if find_custom_part(model):
        return "float32"
    table = model.projection.table
    return "int8" if supports_int8(table.device) and table.numel() >= 1_000_000 else "float32"


class FastTransformer:
    """`model.start` and `model.step` of a trained `Transformer`, with weights in `precision`.

    In float32 its logits are those of `model` but for rounding. It takes a copy of the weights:
    training `model` further does not change it. `compiled` makes all of it quicker, in float32 the step
    of one sentence alone (compiled.py); it needs the extra `fast`, and the first time half a minute.

    A model with a part that this file does not know (a subclass, a forward hook; parts.py) is run as it
    is, by its own `start` and `step`, in float32; int8 and `compiled` refuse it.
    """

    @torch.inference_mode()
    def __init__(self, model: Transformer, *, precision: str = "float32", compiled: bool = False) -> None:
        if precision not in get_args(Precision):
            raise ConfigError(f'precision must be "auto", "float32" or "int8"; got {precision!r}')
        self.config, self.precision = model.config, cast(Precision, precision)
        self.compiled: CompiledBlocks | None = None
        self.top_continuations: TopContinuations | None = None  # for a beam to use in place of its own
        custom = find_custom_part(model)
        self.plain = model if custom else None
        if custom:
            if compiled or precision == "int8":
                raise ConfigError(
                    f"{custom}, which {'compiled=True' if compiled else 'int8'} does not know; "
                    'use precision "float32" without compiled'
                )
            return
        make: Callable[[Tensor, Tensor | None], LinearMap] = Int8Linear if precision == "int8" else _FloatLinear
        self.scale = math.sqrt(model.config.d_model)
        self.source_table = model.source_embedding.table.detach()
        self.target_table = model.target_embedding.table.detach()
        self.source_position = cast(Tensor, model.source_position.encoding).detach()
        self.target_position = cast(Tensor, model.target_position.encoding).detach()
        self.encoder = [_FastEncoderBlock(block, make) for block in model.encoder.layers]  # type: ignore[arg-type]
        self.decoder = [_FastDecoderBlock(block, make) for block in model.decoder.layers]  # type: ignore[arg-type]
        self.encoder_norm, self.decoder_norm = model.encoder.norm, model.decoder.norm
        self.projection = make(model.projection.table, None)
        if compiled:
            self._compile(model)

    def start(self, source: Tensor) -> AnyState:
        """The state from which `step` writes a translation of the source (B, S)."""
        if self.plain:
            return self.plain.start(source)
        require_rows("source", source)
        rows, length = source.shape
        if length > len(self.source_position):
            raise InputError(f"a sequence of {length} tokens is longer than max_length={len(self.source_position)}")
        real = source != self.config.pad_id
        padding = None if bool(real.all()) else attention_bias(real, self.source_table.dtype)[:, None, None, :]
        with _refusing_unknown_ids(source, self.source_table):
            x = torch.add(self.source_position[:length], torch.embedding(self.source_table, source), alpha=self.scale)
        if self.compiled and self.compiled.encoding_pays():
            self.compiled.encode(x, padding)
        else:
            for block in self.encoder:
                x = block(x, padding)
            x = self.encoder_norm(x)
        memory = tuple(block.project_kv(x) for block in self.decoder)
        pools = tuple(block.self_attention.empty_cache(x) for block in self.decoder)
        return CachedState(memory, padding, pools, hypotheses=rows)

    def step(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        """Logits of the next word, (N, V), after the `last` one, (N,), and the state with it in."""
        return self._step(last, state, None)

    def log_step(self, last: Tensor, state: AnyState, banned_ids: Tensor) -> tuple[Tensor, AnyState]:
        """As `step`, but log-probabilities in float32, with no chance for the words in `never`."""
        return self._step(last, state, banned_ids)

    def _step(self, last: Tensor, state: AnyState, banned_ids: Tensor | None) -> tuple[Tensor, AnyState]:
        if isinstance(state, DecoderState):
            assert self.plain
            found, after = self.plain.step(last, state)
            return found if banned_ids is None else _log_probabilities(found, banned_ids), after
        if state.length == len(self.target_position):
            raise InputError(f"a sequence of {state.length + 1} tokens is longer than max_length={state.length}")
        sentences = state.sentences
        each = state.hypotheses // sentences
        ancestry_mask = state.ancestry_mask
        if each > 1 or ancestry_mask is not None:  # a hypothesis sees its own newest word, and not the others'
            own = _diagonal_bias(sentences, each, self.target_table.dtype, self.target_table.device)
            ancestry_mask = own if ancestry_mask is None else torch.cat((ancestry_mask, own), 1)
        if self.compiled and self.compiled.step_pays(state.hypotheses, sentences=sentences):
            pools = tuple(pool.reserve(each, after=state.cached) for pool in state.caches)
            with _refusing_unknown_ids(last, self.target_table):
                found = self.compiled.step(
                    last,
                    state.length,
                    pools,
                    state.cached,
                    ancestry_mask,
                    state.memory_caches,
                    state.padding,
                    banned_ids,
                )
        else:
            with _refusing_unknown_ids(last, self.target_table):
                words = torch.embedding(self.target_table, last)
            x = torch.add(self.target_position[state.length], words, alpha=self.scale)
            x = x.view(sentences, each, -1)  # (N, D) → (B, N/B, D): a sentence's hypotheses as if they were positions
            mask = None if ancestry_mask is None else ancestry_mask.view(sentences, 1, each, -1)
            grown = []
            for block, pool, memory in zip(self.decoder, state.caches, state.memory_caches, strict=True):
                x, pool = block(x, pool, state.cached, mask, memory, state.padding)
                grown.append(pool)
            pools = tuple(grown)
            found = self.projection(self.decoder_norm(x).view(state.hypotheses, -1))
            if banned_ids is not None:
                found = _log_probabilities(found, banned_ids)
        return found, CachedState(
            state.memory_caches,
            state.padding,
            pools,
            state.hypotheses,
            state.cached + each,
            ancestry_mask,
            state.length + 1,
        )

    def _compile(self, model: Transformer) -> None:
        if self.target_table.device.type != "cpu":
            raise ConfigError(f"compiled=True is for a processor; the model is on {self.target_table.device}")
        try:
            from . import compiled
        except ImportError:
            raise MissingExtraError("compiled=True", "fast") from None
        if self.precision == "int8" and compiled.has_vpdpbusd():
            self.projection = compiled.VNNILinear(model.projection.table, None)
            for fast, block in zip(self.decoder, cast(Sequence[DecoderBlock], model.decoder.layers), strict=True):
                key, value = block.cross_attention.key, block.cross_attention.value
                fast.keys_and_values = compiled.VNNILinear(
                    torch.cat([key.weight, value.weight]),
                    torch.cat([key.bias, value.bias]),
                )
        self.top_continuations = compiled.compiled_top_continuations
        self.compiled = compiled.CompiledBlocks(model, projection=self.projection, int8=self.precision == "int8")


class _refusing_unknown_ids:  # noqa: N801  a function with `contextmanager` would take 2 µs of every step
    """Looking up ids, on a processor, finds those outside the vocabulary by itself; here it is told as everywhere."""

    def __init__(self, ids: Tensor, table: Tensor) -> None:
        self.ids, self.table = ids, table

    def __enter__(self) -> None:
        if self.ids.dtype != torch.int64 or self.ids.device.type != "cpu":
            refuse_unknown_ids(self.ids, len(self.table))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, IndexError):
            refuse_unknown_ids(self.ids, len(self.table))


def _log_probabilities(logits: Tensor, never: Tensor) -> Tensor:
    return logits.index_fill(1, never, -torch.inf).log_softmax(-1, dtype=torch.float32)


@lru_cache(64)
def _diagonal_bias(sentences: int, each: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """For each hypothesis 0 at its own place among those of its sentence, attention_bias at the others', (B · E, E)."""
    return attention_bias(torch.eye(each, dtype=torch.bool, device=device), dtype).repeat(sentences, 1)


class _FloatLinear:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def _joined(make: Callable[[Tensor, Tensor | None], LinearMap], *maps: nn.Linear) -> LinearMap:
    """One map in place of several of the same vector: their results side by side."""
    if len(maps) == 1:
        return make(maps[0].weight, maps[0].bias)
    return make(torch.cat([part.weight for part in maps]), torch.cat([part.bias for part in maps]))


class _FastResidual:
    """Add & norm: see residual.py."""

    def __init__(self, residual: Residual) -> None:
        self.norm_first = residual.norm_first
        self.gain, self.bias, self.eps = residual.norm.gain.detach(), residual.norm.bias.detach(), residual.norm.eps
        self.shape = self.gain.shape

    def pre_norm(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.gain, self.bias, self.eps) if self.norm_first else x

    def add_and_norm(self, x: Tensor, more: Tensor) -> Tensor:
        more.add_(x)
        return more if self.norm_first else torch.layer_norm(more, self.shape, self.gain, self.bias, self.eps)


class _FastFeedForward:
    def __init__(
        self, feed_forward: FeedForward, around: Residual, make: Callable[[Tensor, Tensor | None], LinearMap]
    ) -> None:
        self.inner, self.outer = _joined(make, feed_forward.inner), _joined(make, feed_forward.outer)
        self.activation = torch.relu_ if feed_forward.activation is F.relu else feed_forward.activation
        self.residual = _FastResidual(around)

    def __call__(self, x: Tensor) -> Tensor:
        return self.residual.add_and_norm(x, self.outer(self.activation(self.inner(self.residual.pre_norm(x)))))


class _FastSelfAttention:
    """Queries, keys and values of one vector by one product, with what stands around it."""

    def __init__(
        self, attention: MultiHeadAttention, around: Residual, make: Callable[[Tensor, Tensor | None], LinearMap]
    ) -> None:
        self.heads, self.residual = attention.heads, _FastResidual(around)
        self.qkv = _joined(make, attention.query, attention.key, attention.value)
        self.output = _joined(make, attention.output)
        self.width = attention.key.out_features
        self.words = self.width + attention.value.out_features

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All three, the queries first, and keys and values as a pool takes them, (B, L, H·K + H·Kv)."""
        all_three = self.qkv(self.residual.pre_norm(x))
        return all_three, all_three[..., self.width :]

    def empty_cache(self, x: Tensor) -> KVCache:
        """A pool of no words for the sentences of `x`."""
        return KVCache(x.new_empty(x.size(0), 0, self.words), 0, heads=self.heads, width=self.width)


def cached_attention(query: Tensor, pool: KVCache, mask: Tensor | None) -> Tensor:
    """Equation 1, its heads side by side again. Shapes: query (B, T, H·K …), mask (B, 1, T, L) → (B, T, H·Kv)."""
    query = split_heads(query[..., : pool.width], pool.heads)
    keys, values = pool.keys.narrow(2, 0, pool.used), pool.values.narrow(2, 0, pool.used)
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask).transpose(1, 2).flatten(2)


class _FastEncoderBlock:
    def __init__(self, block: EncoderBlock, make: Callable[[Tensor, Tensor | None], LinearMap]) -> None:
        self.attention = _FastSelfAttention(block.attention, block.attention_residual, make)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.feed_forward_residual, make)

    def __call__(self, x: Tensor, padding: Tensor | None) -> Tensor:
        own = self.attention
        query, words = own.project_qkv(x)
        pool = KVCache(words, words.size(1), heads=own.heads, width=own.width)
        return self.feed_forward(own.residual.add_and_norm(x, own.output(cached_attention(query, pool, padding))))


class _FastDecoderBlock:
    def __init__(self, block: DecoderBlock, make: Callable[[Tensor, Tensor | None], LinearMap]) -> None:
        cross = block.cross_attention
        self.self_attention = _FastSelfAttention(block.self_attention, block.self_attention_residual, make)
        self.heads, self.width = cross.heads, cross.key.out_features
        self.query, self.output = _joined(make, cross.query), _joined(make, cross.output)
        self.keys_and_values = _joined(make, cross.key, cross.value)
        self.cross_attention_residual = _FastResidual(block.cross_attention_residual)
        self.feed_forward = _FastFeedForward(block.feed_forward, block.feed_forward_residual, make)

    def project_kv(self, memory: Tensor) -> KVCache:
        """The memory (B, S, D), projected once for all words."""
        return KVCache(self.keys_and_values(memory), memory.size(1), heads=self.heads, width=self.width)

    def __call__(
        self,
        x: Tensor,
        pool: KVCache,
        pooled: int,
        mask: Tensor | None,
        memory: KVCache,
        padding: Tensor | None,
    ) -> tuple[Tensor, KVCache]:
        own, around = self.self_attention, self.cross_attention_residual
        query, words = own.project_qkv(x)
        pool = pool.append(words, after=pooled)
        x = own.residual.add_and_norm(x, own.output(cached_attention(query, pool, mask)))
        query = self.query(around.pre_norm(x))
        x = around.add_and_norm(x, self.output(cached_attention(query, memory, padding)))
        return self.feed_forward(x), pool
