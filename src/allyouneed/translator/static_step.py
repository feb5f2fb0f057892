"""`nn/` as an engine for CUDA GPUs, which replays its steps as a graph.

A step consists of about a hundred kernels, which Python launches more slowly than a GPU runs them; a graph needs a
single launch. In return, every step must use tensors of the same shapes in the same memory. So the KV caches have their
full length from the start. The newest token of each hypothesis is always in the last place, as `nn/` and rotary
positions expect; every step moves older tokens by one place, and a mask hides the empty places. The blocks are the
model's own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import AllYouNeedError
from ..fast.comparison import varied_ids
from ..fast.packed import embed_tokens
from ..machine.device import runs_ahead
from ..nn import DecoderCache, KVCache, Memory, Transformer
from ..nn.embedding import refuse_unknown_ids
from ..nn.position import refuse_long
from .definition import DefinitionEngine, DefinitionStep

LEAST_PLACES = 16  # in a cache
MOST_KEPT = 8  # decoders kept for later searches
_CAPTURE_LOCK = Lock()  # PyTorch records all graphs on one stream
TOLERANCES = {"float32": 1e-3, "bfloat16": 0.05}  # largest deviation of log-probabilities, as a root mean square


class Shape(NamedTuple):
    """The sizes of a decoder: sentences, hypotheses for each sentence, and places for source and target tokens."""

    sentences: int
    width: int
    source_places: int
    target_places: int


def rounded_up(number: int, least: int = 1) -> int:
    """Round up to a power of two, so that few different shapes occur."""
    return max(least, 1 << (number - 1).bit_length())


@dataclass(slots=True)
class StaticKVCache(KVCache):
    """Keys and values at a fixed place in memory. `rows` are the hypotheses that the next step extends."""

    rows: Tensor | None = None

    def update(self, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Move all keys and values by one place, and put the result of `project` into the last place."""
        assert self.rows is not None
        kept = keys_and_values(self)
        for places, newest in zip(kept, project(), strict=True):
            places.copy_(torch.cat((places.index_select(0, self.rows)[:, :, 1:], newest), 2))
        return kept


def keys_and_values(cache: KVCache) -> tuple[Tensor, Tensor]:
    """Return the keys and values of a cache that is not empty."""
    assert cache.kept is not None
    return cache.kept


class StaticDecoder:
    """All tensors that a step reads and writes, at a fixed place in memory, for searches of one shape."""

    def __init__(self, model: Transformer, like: DecoderCache, shape: Shape) -> None:
        """Allocate the tensors. `like` is a cache with keys and values of the same widths."""
        self.model = model
        self.shape = shape
        self.graph: torch.cuda.CUDAGraph | None = None
        table = model.projection.table
        rows = shape.sentences * shape.width
        self.newest = torch.zeros(rows, 1, dtype=torch.int64, device=table.device)
        self.parents = torch.zeros(rows, dtype=torch.int64, device=table.device)
        self.past = torch.zeros(1, dtype=torch.int64, device=table.device)  # number of tokens before the newest
        self.places = torch.arange(shape.target_places, device=table.device)
        # Only its shape is used: its keys and values are in the cache.
        self.memory = table.new_zeros(shape.sentences, 1, model.config.d_model)
        self.memory_mask = self.newest.new_zeros(shape.sentences, 1, 1, shape.source_places, dtype=torch.bool)
        self.logits = table.new_zeros(rows, len(table))
        self.cache = DecoderCache(len(like.blocks))
        for block, other in zip(self.cache.blocks, like.blocks, strict=True):
            block.tokens = StaticKVCache(_places(other.tokens, rows, shape.target_places), rows=self.parents)
            block.memory.kept = _places(other.memory, shape.sentences, shape.source_places)

    def load(self, cache: DecoderCache, memory: Memory) -> None:
        """Copy a cache of `nn/` with the same number of hypotheses, to continue from there."""
        length = memory.attn_mask.size(-1)
        self.memory_mask.zero_()[..., :length] = memory.attn_mask
        self.past.fill_(cache.length)
        for block, other in zip(self.cache.blocks, cache.blocks, strict=True):
            for places, values in zip(keys_and_values(block.tokens), keys_and_values(other.tokens), strict=True):
                places.zero_()[:, :, -cache.length :] = values
            for places, values in zip(keys_and_values(block.memory), keys_and_values(other.memory), strict=True):
                places.zero_()[:, :, :length] = values

    def as_cache(self, past: int, source_length: int) -> DecoderCache:
        """Return the decoder's keys and values as a cache for `nn/`. The cache shares their memory."""
        cache = DecoderCache(len(self.cache.blocks))
        for block, other in zip(cache.blocks, self.cache.blocks, strict=True):
            keys, values = keys_and_values(other.tokens)
            block.tokens.kept = keys[:, :, -past:], values[:, :, -past:]
            keys, values = keys_and_values(other.memory)
            block.memory.kept = keys[:, :, :source_length], values[:, :, :source_length]
        return cache

    def run(self) -> None:
        """Compute the logits of the next token, without any decision on the CPU."""
        if self.graph is None:
            self._step()
        else:
            self.graph.replay()

    def capture(self) -> None:
        """Record a step as a graph. This overwrites the contents of all tensors."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # libraries allocate their workspaces in the first calls
                self._step()
                self.past.zero_()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step()
        self.graph = graph

    def _step(self) -> None:
        model = self.model
        x = embed_tokens(model.target_embedding, model.target_position, self.newest, self.past)
        is_taken = self.places >= len(self.places) - 1 - self.past
        x = model.decoder(x, self.memory, self.memory_mask, is_taken[None], self.cache)
        self.logits.copy_(model.projection(x)[:, 0])  # (N, 1, V) → (N, V)
        self.past.add_(1)


def _places(cache: KVCache, rows: int, length: int) -> tuple[Tensor, Tensor]:
    keys, values = keys_and_values(cache)
    heads = keys.size(1)
    d_k = keys.size(3)
    d_v = values.size(3)
    return keys.new_zeros(rows, heads, length, d_k), values.new_zeros(rows, heads, length, d_v)


class StaticEngine(DefinitionEngine):
    """A `DefinitionEngine` with graphs. It keeps each `StaticDecoder` for later searches of the same shape."""

    def __init__(self, model: Transformer, precision: str = "auto") -> None:
        super().__init__(model, precision)
        self._captures = runs_ahead(self.device)  # devices without graphs compute the same steps directly
        self._lock = Lock()
        self._free: list[StaticDecoder] = []

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> StaticStep:
        """Encode sources and start a search; see `Engine.start`."""
        return StaticStep(self, sources, banned_ids, renormalize)

    def take(self, like: DecoderCache, shape: Shape) -> StaticDecoder:
        """Take a decoder of this shape for one search: a spare one, or a new one."""
        with self._lock:
            decoder = next((decoder for decoder in self._free if decoder.shape == shape), None)
            if decoder:
                self._free.remove(decoder)
                return decoder
        decoder = StaticDecoder(self.model, like, shape)
        if self._captures:
            with _CAPTURE_LOCK:
                decoder.capture()
        return decoder

    def give_back(self, decoder: StaticDecoder) -> None:
        """Keep a decoder for other searches. A search returns its decoders when it ends."""
        with self._lock:
            self._free = [*self._free, decoder][-MOST_KEPT:]


class StaticStep(DefinitionStep):
    """One search of a `StaticEngine`. The first step, which also projects the memory, is computed by `nn/`."""

    def __init__(
        self, engine: StaticEngine, sources: Sequence[Sequence[int]], banned_ids: Sequence[int], renormalize: bool
    ) -> None:
        # Fill the shape; their results are never read.
        copies = [sources[-1]] * (rounded_up(len(sources)) - len(sources))
        super().__init__(engine, [*sources, *copies], banned_ids, renormalize)
        del self._sentences[len(sources) :], self._rows[len(sources) :]
        self._engine = engine
        self._decoder: StaticDecoder | None = None
        self._most = 1
        self._length = 0

    def _kept(self, left: list[int], count: int) -> list[int]:
        size = rounded_up(len(left))
        return [*left, *[left[-1]] * (size - len(left))] if size < count else []

    def _width(self, most: int) -> int:
        self._most = max(self._most, most)
        return self._most

    def _decode(self, parents: Tensor, newest: Tensor, kept: Tensor | None) -> Tensor:
        if self._length == 0:
            logits = super()._decode(parents, newest, kept)
        else:
            config = self._engine.config
            refuse_unknown_ids(newest, config.effective_target_vocab_size)
            refuse_long(self._length + 1, config.max_length)
            decoder = self._placed(parents, kept)
            decoder.newest.copy_(self._put(newest)[:, None])
            decoder.run()
            logits = decoder.logits
        self._length += 1
        return logits

    def _placed(self, parents: Tensor, kept: Tensor | None) -> StaticDecoder:
        """Return a decoder that holds these hypotheses. It is another decoder if the shape has changed."""
        sentences = len(self._memory.attn_mask if kept is None else kept)
        source_length = self._memory.attn_mask.size(-1)
        shape = Shape(
            sentences,
            len(parents) // sentences,
            rounded_up(source_length, LEAST_PLACES),
            rounded_up(self._length + 1, LEAST_PLACES),
        )
        before = self._decoder
        if before and before.shape == shape:
            before.parents.copy_(self._put(parents))
            return before
        if before:
            self._cache = before.as_cache(self._length, source_length)
        self._select(parents, kept)
        self._decoder = self._engine.take(self._cache, shape)
        self._decoder.load(self._cache, self._memory)
        self._decoder.parents.copy_(self._put(torch.arange(len(parents))))
        weakref.finalize(self, self._engine.give_back, self._decoder)
        return self._decoder


@torch.inference_mode()
def find_difference(engine: StaticEngine) -> str:
    """Describe how steps of the engine differ from steps of `nn/`, beyond rounding; "" if they do not."""
    config = engine.config
    rng = torch.Generator().manual_seed(0)
    sources = [varied_ids(min(n, config.max_length), config.vocab_size, config.pad_id, rng).tolist() for n in (9, 5, 7)]
    steps = DefinitionStep(engine, sources, (), True), engine.start(sources)
    for hypotheses in ([0, 1, 2], [0, 0, 1, 2], [1, 0, 3], [0, 2, 2], [0, 1])[: config.max_length]:
        tokens = varied_ids(
            len(hypotheses), config.effective_target_vocab_size, config.effective_target_pad_id, rng
        ).tolist()
        try:
            for step in steps:
                step(hypotheses, tokens)
        except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            return f"a static step cannot compute this model ({type(error).__name__}: {error})"
        right, ours = (step.log_probabilities() for step in steps)
        difference = float((ours - right).square().mean().sqrt())
        if not difference <= TOLERANCES[engine.precision] * float(right.std()):
            return f"a static step differs from nn/ by {difference:.3g} nats"
    return ""
