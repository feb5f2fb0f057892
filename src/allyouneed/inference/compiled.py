"""Encoder, decoder and projection as calls of machine code, which Numba makes of kernels.py.

A step of a small model is some sixty small operations, and PyTorch takes longer to arrange each than to do it.
The first call of each kernel compiles it, half a minute in all; Numba keeps the machine code on disk.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import llvmlite.binding as llvm
import numpy as np
import torch
from torch import Tensor, nn

from ..decode.beam import Best
from ..errors import ConfigError
from ..nn.attention import MultiHeadAttention
from ..nn.decoder import DecoderBlock
from ..nn.encoder import EncoderBlock
from ..nn.feedforward import FeedForward
from ..nn.normalization import LayerNorm
from ..nn.residual import Residual
from ..nn.transformer import Transformer
from . import kernels
from .dispatch import compiled_float32_pays
from .eager import EagerEngine, MakeLinear
from .engine import Precision
from .kernels import (
    ACTIVATION_NAMES,
    PANEL,
    Array,
    BlockOptions,
    BlockWeights,
    CrossAttentionWeights,
    EmbeddingWeights,
    FloatWeights,
    Int8Weights,
)
from .kv_cache import CachedState, KVCache
from .quantization import quantize

NO_IDS = np.empty(0, np.int64)
NOTHING = np.empty((0, 0), np.float32)  # a mask that hides nothing; the final norm of a stack that has none


class CompiledEngine(EagerEngine):
    """An `Engine` of compiled kernels, on a CPU; where PyTorch is faster (dispatch.py), an `EagerEngine`.

    In int8 on a processor with VPDPBUSD everything is compiled, for batches of any size, so that a sentence
    is rounded in one way in any batch. Elsewhere only steps of one sentence are.
    """

    compiled = True

    @torch.inference_mode()
    def __init__(self, model: Transformer, *, precision: Precision = "float32") -> None:
        if model.projection.table.device.type != "cpu":
            raise ConfigError(f"compiled=True is for a CPU; the model is on {model.projection.table.device}")
        self._vnni = precision == "int8" and has_vpdpbusd()
        super().__init__(model, precision=precision)
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
        first = encoder[0]
        self._embedding = EmbeddingWeights(
            _array(model.target_embedding.table),
            model.config.d_model**0.5,
            _array(cast(Tensor, model.target_position.encoding)),
        )
        self._query_width = first.attention.query.out_features
        self._options = BlockOptions(
            first.attention.heads,
            first.attention_residual.norm_first,
            ACTIVATION_NAMES.index(model.config.activation),
            first.attention_residual.norm.eps,
        )
        self._decoder_size = sum(part.weight.numel() for part in model.decoder.modules() if isinstance(part, nn.Linear))

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return compiled_top_continuations(totals, log_probabilities, count)

    def _make_linear(self) -> MakeLinear:
        return VNNILinear if self._vnni else super()._make_linear()

    def _encode(self, x: Tensor, padding: Tensor | None) -> Tensor:
        if not self._vnni:
            return super()._encode(x, padding)
        rows, options, mask = x.flatten(0, 1).numpy(), self._options, _mask_array(padding)
        kernels.encode_tokens(rows, len(x), self._encoder_weights, options, self._query_width, mask)  # in place
        return x

    def _decode(
        self, last: Tensor, state: CachedState, mask: Tensor | None, banned_ids: Tensor | None
    ) -> tuple[Tensor, tuple[KVCache, ...]]:
        if not self._vnni and not compiled_float32_pays(
            multiplications=state.hypotheses * self._decoder_size,
            sentences=state.sentences,
            threads=torch.get_num_threads(),
        ):
            return super()._decode(last, state, mask, banned_ids)
        width = state.hypotheses // state.sentences
        caches = tuple(cache.reserve(width, after=state.cached) for cache in state.caches)
        # Tensors become arrays here: NumPy needs less time than PyTorch for what is left to arrange.
        inputs = (
            last.numpy(), state.length, self._embedding, self._decoder_weights, self._cross_weights, self._options,
            tuple(cache.array for cache in caches), state.cached, NOTHING if mask is None else mask.numpy(),
            tuple(cache.array for cache in state.memory_caches), _mask_array(state.padding),
        )  # fmt: skip
        rows, projection = len(last), self.projection
        if isinstance(projection, VNNILinear):
            logits = np.empty((rows, projection.outputs), np.float32)
            normalize, banned = banned_ids is not None, NO_IDS if banned_ids is None else banned_ids.numpy()
            kernels.decode_and_project(logits, projection.map, normalize, banned, inputs)
            return torch.from_numpy(logits), caches
        x = np.empty((rows, self._embedding.table.shape[1]), np.float32)
        kernels.decode_tokens(x, *inputs)
        scores = projection(torch.from_numpy(x))
        return scores if banned_ids is None else compiled_log_softmax(scores, banned_ids), caches

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
        )

    def _maps(self, blocks: Iterable[Sequence[nn.Linear]]) -> FloatWeights | Int8Weights:
        """For each block one linear map in place of several of the same vector: their outputs side by side."""
        joined = [
            (torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])) for parts in blocks
        ]
        return pack_int8(joined) if self._vnni else pack_float32(joined, int8=self.precision == "int8")


class VNNILinear:
    """`F.linear(x, weight, bias)` of quantized weights and inputs, by VPDPBUSD."""

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
    before = np.array(totals, np.float32)
    shape = len(before), min(count, before.shape[1] * log_probabilities.size(1))
    best, parents, tokens = np.empty(shape, np.float32), np.empty(shape, np.int64), np.empty(shape, np.int64)
    kernels.top_continuations_rows(before, log_probabilities.numpy(), best, parents, tokens)
    return best.tolist(), parents.tolist(), tokens.tolist()


def has_vpdpbusd() -> bool:
    """Whether this processor has VPDPBUSD for registers of 64 bytes (x86, AVX-512 VNNI)."""
    return bool(llvm.get_host_cpu_features().get("avx512vnni", False))


def pack_float32(maps: Sequence[tuple[Tensor, Tensor]], *, int8: bool) -> FloatWeights:
    """Weights and biases of maps of one shape, for `kernels.linear_float32`."""
    pairs = [quantize(weight.detach()) if int8 else (weight.detach(), torch.ones(len(weight))) for weight, _ in maps]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    return FloatWeights(_array(numbers), _array(scale), _array(torch.stack([bias for _, bias in maps])))


def pack_int8(maps: Sequence[tuple[Tensor, Tensor]]) -> Int8Weights:
    """Weights and biases of maps of one shape, for `kernels.linear_int8`."""
    pairs = [quantize(weight.detach()) for weight, _ in maps]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    count, wide, deep = numbers.shape  # N, out, in
    whole = numbers.new_zeros(count, -(-wide // PANEL) * PANEL, -(-deep // 4) * 4)
    whole[:, :wide, :deep] = numbers
    panels = whole.view(count, -1, PANEL, whole.size(2) // 4, 4).transpose(2, 3).flatten(2)
    total = scale * numbers.sum(2, dtype=torch.float32)
    return Int8Weights(_array(panels), _array(scale), _array(total), _array(torch.stack([bias for _, bias in maps])))


def _mask_array(padding: Tensor | None) -> Array:
    return NOTHING if padding is None else padding.numpy()[:, 0, 0]


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()
