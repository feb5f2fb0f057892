"""Encoder, decoder and projection as calls of machine code, which Numba makes of kernels.py.

A step of a small model is some sixty small operations, and PyTorch takes longer to arrange each than to do it.
The first call of each kernel compiles it, half a minute in all; Numba keeps the machine code on disk.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any, cast

import llvmlite.binding as llvm
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..decode.beam import Best
from ..device import has_vnni
from ..errors import ConfigError
from ..nn.attention import MultiHeadAttention
from ..nn.decoder import DecoderBlock
from ..nn.encoder import EncoderBlock
from ..nn.feedforward import ACTIVATIONS, FeedForward
from ..nn.normalization import LayerNorm
from ..nn.residual import Residual
from ..nn.transformer import Transformer
from . import kernels
from .adjustment import stack_gains
from .eager import EagerEngine
from .eager_blocks import join_maps
from .engine import Precision
from .fastest_way import FastestWay
from .kernels import (
    ACTIVATION_NAMES,
    LAYOUTS,
    Array,
    AVX2Weights,
    AVXVNNIWeights,
    BlockOptions,
    BlockWeights,
    CrossAttentionWeights,
    EmbeddingWeights,
    FloatWeights,
    Int8Weights,
    NEONWeights,
    VNNIWeights,
)
from .kv_cache import CachedState, KVCache
from .quantization import greatest_level, quantize

NO_IDS = np.empty(0, np.int64)
NOTHING = np.empty((0, 0), np.float32)  # a mask that hides nothing; the final norm of a stack that has none


class CompiledEngine(EagerEngine):
    """An `Engine` on a CPU whose steps are compiled, for each number of hypotheses if that is faster, as timed in use.

    Everything else is computed as in `EagerEngine`.
    """

    compiled = True

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return compiled_top_continuations(totals, log_probabilities, count)

    def most_likely(self, log_probabilities: Tensor, sentences: Sequence[int]) -> tuple[Tensor, Tensor]:
        """`decode.greedy.most_likely`, compiled."""
        totals = np.zeros((len(log_probabilities), 1), np.float32)
        best, _parents, tokens = _best_continuations(totals, log_probabilities, 1)
        return torch.from_numpy(best[:, 0]), torch.from_numpy(tokens[:, 0])

    def _dtype(self, precision: Precision) -> torch.dtype:
        return torch.float32  # of the KV cache, which the kernels read

    def _prepare(self, model: Transformer) -> None:
        super()._prepare(model)
        self._pack(model)
        self._decode_fastest = FastestWay(self._decode_compiled, super()._decode)

    def _pack(self, model: Transformer) -> None:
        """Put the weights of encoder and decoder into the arrays that the kernels read."""
        encoder = cast(Sequence[EncoderBlock], model.encoder.layers)
        decoder = cast(Sequence[DecoderBlock], model.decoder.layers)
        self._encoder_weights = self._stack(
            [block.attention for block in encoder],
            [block.feed_forward for block in encoder],
            [[block.attention_residual, block.feed_forward_residual] for block in encoder],
            model.encoder.norm,
        )
        self._decoder_weights = self._stack(
            [block.self_attention for block in decoder],
            [block.feed_forward for block in decoder],
            [
                [block.self_attention_residual, block.cross_attention_residual, block.feed_forward_residual]
                for block in decoder
            ],
            model.decoder.norm,
        )
        self._cross_weights = CrossAttentionWeights(
            self._maps([block.cross_attention.query] for block in decoder),
            self._maps([block.cross_attention.output] for block in decoder),
        )
        self._embedding = EmbeddingWeights(
            _array(model.target_embedding.table),
            model.config.d_model**0.5,
            _array(model.target_position.encoding),
        )
        first = encoder[0]
        self._heads, self._query_width = first.attention.heads, first.attention.query.out_features
        self._kv_width = self._query_width + first.attention.value.out_features
        self._options = BlockOptions(
            self._heads,
            _common(part.norm_first for part in model.modules() if isinstance(part, Residual)),
            [ACTIVATIONS[name] for name in ACTIVATION_NAMES].index(
                _common(part.activation for part in model.modules() if isinstance(part, FeedForward))
            ),
            _common(part.eps for part in model.modules() if isinstance(part, LayerNorm)),
        )

    def _decode(
        self, last: Tensor, state: CachedState, mask: Tensor | None, banned_ids: Tensor | None
    ) -> tuple[Tensor, tuple[KVCache, ...]]:
        size = state.hypotheses.bit_length(), torch.get_num_threads()
        return self._decode_fastest(size, last, state, mask, banned_ids)

    def _decode_compiled(
        self, last: Tensor, state: CachedState, mask: Tensor | None, banned_ids: Tensor | None
    ) -> tuple[Tensor, tuple[KVCache, ...]]:
        caches, inputs = self._inputs(last, state, mask)
        x = np.empty((len(last), self._embedding.table.shape[1]), np.float32)
        kernels.decode_tokens(x, *inputs)
        scores = self.projection(torch.from_numpy(x))
        return scores if banned_ids is None else compiled_log_softmax(scores, banned_ids), caches

    def _inputs(
        self, last: Tensor, state: CachedState, mask: Tensor | None
    ) -> tuple[tuple[KVCache, ...], tuple[Any, ...]]:
        """The caches with room for the last tokens, and the arguments of `decode_tokens` after `x`.

        Tensors become arrays here: NumPy needs less time than PyTorch for what is left to arrange.
        """
        width = state.hypotheses // state.sentences
        caches = tuple(cache.reserve(width, after=state.cached) for cache in state.caches)
        return caches, (
            last.contiguous().numpy(),
            np.full(state.sentences, state.length),
            self._embedding, self._decoder_weights, self._cross_weights, self._options,
            *_addresses(caches), state.cached, NOTHING if mask is None else mask.numpy(),
            *_addresses(state.memory_caches), _mask_array(state.padding),
            NO_IDS if state.rows is None else state.rows.numpy(),
        )  # fmt: skip

    def _stack(
        self,
        attentions: Sequence[MultiHeadAttention],
        feed_forwards: Sequence[FeedForward],
        residuals: Sequence[Sequence[Residual]],
        final_norm: nn.Module,
    ) -> BlockWeights:
        norms = [[residual.norm for residual in block] for block in residuals]
        return BlockWeights(
            self._maps([part.query, part.key, part.value] for part in attentions),
            self._maps([part.output] for part in attentions),
            self._maps([part.inner] for part in feed_forwards),
            self._maps([part.outer] for part in feed_forwards),
            np.stack([[_array(norm.gain) for norm in block] for block in norms]),
            np.stack([[_array(norm.bias) for norm in block] for block in norms]),
            np.stack([_array(final_norm.gain), _array(final_norm.bias)])
            if isinstance(final_norm, LayerNorm)
            else NOTHING,
            _array(torch.stack([stack_gains(part) for part in attentions])),
            _array(self.rotation),
        )

    def _maps(self, blocks: Iterable[Sequence[nn.Linear]]) -> FloatWeights | Int8Weights:
        """For each block one linear map in place of several of the same vector: their outputs side by side."""
        return self._pack_maps([join_maps(*parts) for parts in blocks])

    def _pack_maps(self, maps: Sequence[tuple[Tensor, Tensor]]) -> FloatWeights | Int8Weights:
        return pack_float32(maps)


class CompiledInt8Engine(CompiledEngine):
    """The compiled engine in int8: everything is compiled, for batches of any size.

    It quantizes as `EagerEngine` does on the same processor, and the numbers of both are the same to the bit.
    """

    reads_any_row = True

    def _prepare(self, model: Transformer) -> None:
        self._pack(model)
        cross = [block.cross_attention for block in cast(Sequence[DecoderBlock], model.decoder.layers)]
        self._memory_maps = [CompiledInt8Linear(*join_maps(part.key, part.value)) for part in cross]
        self._int8_projection = CompiledInt8Linear(model.projection.table, model.projection.bias)

    def _pack_maps(self, maps: Sequence[tuple[Tensor, Tensor]]) -> Int8Weights:
        return pack_int8(maps)

    def _encode(self, x: Tensor, padding: Tensor | None) -> Tensor:
        rows, options, mask = x.flatten(0, 1).numpy(), self._options, _mask_array(padding)
        kernels.encode_tokens(rows, len(x), self._encoder_weights, options, self._query_width, mask)  # in place
        return x

    def _project_memory(self, memory: Tensor) -> tuple[tuple[KVCache, ...], tuple[KVCache, ...]]:
        sizes = {"heads": self._heads, "width": self._query_width}
        memory_caches = tuple(KVCache(project(memory), memory.size(1), **sizes) for project in self._memory_maps)
        return (
            memory_caches,
            tuple(KVCache(memory.new_empty(len(memory), 0, self._kv_width), 0, **sizes) for _ in self._memory_maps),
        )

    def _decode(
        self, last: Tensor, state: CachedState, mask: Tensor | None, banned_ids: Tensor | None
    ) -> tuple[Tensor, tuple[KVCache, ...]]:
        caches, inputs = self._inputs(last, state, mask)
        logits = np.empty((len(last), self._int8_projection.outputs), np.float32)
        normalize, banned = banned_ids is not None, NO_IDS if banned_ids is None else banned_ids.numpy()
        kernels.decode_and_project(logits, self._int8_projection.map, normalize, banned, inputs)
        return torch.from_numpy(logits), caches


class CompiledInt8Linear:
    """`F.linear(x, weight, bias)` of quantized weights and inputs."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.map = pack_int8([(weight, weight.new_zeros(len(weight)) if bias is None else bias)])
        self.outputs = len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Shapes: (…, in) → (…, out)."""
        rows = x.numpy().reshape(-1, x.size(-1))
        result = np.empty((len(rows), self.outputs), np.float32)
        kernels.map_rows(rows, self.map, result)
        return torch.from_numpy(result.reshape(*x.shape[:-1], -1))


def compiled_log_softmax(logits: Tensor, banned_ids: Tensor) -> Tensor:
    """The log-probabilities of logits (N, V), in place; those of `banned_ids` are minus infinity."""
    kernels.log_softmax_rows(logits.numpy(), banned_ids.numpy())
    return logits


def compiled_top_continuations(totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
    """`decode.beam.top_continuations`, compiled."""
    best, parents, tokens = _best_continuations(np.array(totals, np.float32), log_probabilities, count)
    return best.tolist(), parents.tolist(), tokens.tolist()


def _best_continuations(totals: Array, log_probabilities: Tensor, count: int) -> tuple[Array, Array, Array]:
    shape = len(totals), min(count, totals.shape[1] * log_probabilities.size(1))
    best, parents, tokens = np.empty(shape, np.float32), np.empty(shape, np.int64), np.empty(shape, np.int64)
    kernels.top_continuations_rows(totals, log_probabilities.numpy(), best, parents, tokens)
    return best, parents, tokens


def int8_weights() -> type[Int8Weights]:
    """Those for the fastest instructions of this processor; refuses one that has none of them."""
    features = {name for name, is_there in llvm.get_host_cpu_features().items() if is_there}
    if has_vnni():
        return VNNIWeights
    if "NUMBA_CPU_NAME" not in os.environ and ("avxvnni" in features or {"avx512vnni", "avx512vl"} <= features):
        return AVXVNNIWeights  # AVX-512 has the same instruction for registers of 256 bits
    if "avx2" in features:
        return AVX2Weights
    if "dotprod" in features:
        return NEONWeights
    raise ConfigError('precision "int8" with compiled=True needs AVX2 (x86) or SDOT (ARM); use "float32"')


def pack_float32(maps: Sequence[tuple[Tensor, Tensor]]) -> FloatWeights:
    """Weights and biases of maps of one shape, for `kernels.linear_float32`."""
    weights, biases = zip(*maps, strict=True)
    return FloatWeights(_array(torch.stack(weights)), _array(torch.stack(biases)), len(biases[0]))


def pack_int8(maps: Sequence[tuple[Tensor, Tensor]]) -> Int8Weights:
    """Weights and biases of maps of one shape, for `kernels.linear_int8`."""
    kind = int8_weights()
    panel = LAYOUTS[kind].outputs
    pairs = [quantize(weight.detach()) for weight, _ in maps]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    count, wide, deep = numbers.shape  # N, out, in
    more = -wide % panel
    whole = F.pad(numbers, (0, -deep % 4, 0, more))
    weights = whole.view(count, -1, panel, whole.size(2) // 4, 4).transpose(2, 3).flatten(2)
    bias = torch.stack([bias.detach() for _, bias in maps])
    floats = [
        F.pad(part, (0, more)).view(count, -1, panel).view(torch.int8)
        for part in (scale, scale * numbers.sum(2, dtype=torch.float32), bias)
    ]
    panels = torch.cat((weights, *floats), 2)
    return kind(_array(panels), wide, np.float32(greatest_level()))


def _common(settings: Iterable[Any]) -> Any:
    """What all blocks have; the kernels have one setting for all."""
    first, *others = settings
    if any(other != first for other in others):
        raise ValueError(f"its blocks differ: {first}, {next(other for other in others if other != first)}")
    return first


def _addresses(caches: Sequence[KVCache]) -> tuple[Array, tuple[int, ...]]:
    """The addresses of contiguous KV caches of one shape, and that shape, (B, capacity, H·K + H·Kv)."""
    return np.array([cache.tokens.data_ptr() for cache in caches]), tuple(caches[0].tokens.shape)


def _mask_array(padding: Tensor | None) -> Array:
    return NOTHING if padding is None else padding.numpy()[:, 0, 0]


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()
