"""Encoder, decoder and projection as calls of machine code, `loops.py`, for batches small enough for it.

A step of a small model is some sixty small operations, and PyTorch takes longer to arrange each than
to do it. The first calls compile, half a minute in all; what they make is kept on disk.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import llvmlite.binding as llvm
import numpy as np
import torch
from torch import Tensor, nn

from ..nn.attention import MultiHeadAttention
from ..nn.decoder import DecoderBlock
from ..nn.encoder import EncoderBlock
from ..nn.feedforward import FeedForward
from ..nn.normalization import LayerNorm
from ..nn.residual import Residual
from ..nn.transformer import Transformer
from . import kernels as loops
from .kernels import (
    ACTIVATIONS,
    PANEL,
    Array,
    BlockOptions,
    BlockWeights,
    CrossAttentionWeights,
    EmbeddingWeights,
    FloatWeights,
    Int8Weights,
)
from .kv_cache import KVCache
from .quantization import quantize

WORTH = 20_000_000  # multiplications of a step in float32; if there are more, PyTorch is quicker
NO_WORDS = np.empty(0, np.int64)
NOTHING = np.empty((0, 0), np.float32)  # a mask that shuts nothing; the norm after a stack that has none


class CompiledBlocks:
    """The blocks of a trained `Transformer`, on a processor, and a `projection`. It takes a copy of the weights."""

    def __init__(self, model: Transformer, *, projection: Callable[[Tensor], Tensor], int8: bool) -> None:
        self._projection = projection
        self._int8, self._bytes = int8, int8 and has_vpdpbusd()
        encoder = cast(Sequence[EncoderBlock], model.encoder.layers)
        decoder = cast(Sequence[DecoderBlock], model.decoder.layers)
        self._encoder = self._stack(
            [block.attention for block in encoder],
            [block.feed_forward for block in encoder],
            [[block.attention_residual, block.feed_forward_residual] for block in encoder],
            model.encoder.norm,
        )
        self._decoder = self._stack(
            [block.self_attention for block in decoder],
            [block.feed_forward for block in decoder],
            [
                [block.self_attention_residual, block.cross_attention_residual, block.feed_forward_residual]
                for block in decoder
            ],
            model.decoder.norm,
        )
        self._cross = CrossAttentionWeights(
            self._maps([block.cross_attention.query] for block in decoder),
            self._maps([block.cross_attention.output] for block in decoder),
        )
        first = encoder[0]
        self._embedding = EmbeddingWeights(
            _array(model.target_embedding.table),
            model.config.d_model**0.5,
            _array(cast(Tensor, model.target_position.encoding)),
        )
        self._queried = first.attention.query.out_features
        self._manner = BlockOptions(
            first.attention.heads,
            first.attention_residual.norm_first,
            ACTIVATIONS.index(model.config.activation),
            first.attention_residual.norm.eps,
        )
        self._writing = sum(part.weight.numel() for part in model.decoder.modules() if isinstance(part, nn.Linear))

    def encoding_pays(self) -> bool:
        """Whether sources are read here: only in int8 with VPDPBUSD, and then always.

        A batch that went another way than a sentence alone would be rounded otherwise.
        """
        return self._bytes

    def step_pays(self, hypotheses: int, *, sentences: int) -> bool:
        """Whether a step of so many hypotheses is quicker here than in PyTorch."""
        return self._bytes or (sentences == 1 and hypotheses * self._writing * torch.get_num_threads() <= WORTH)

    def encode(self, x: Tensor, padding: Tensor | None) -> None:
        """What the encoder makes of embedded sources (B, S, D), in place. `padding` is as in `CachedState`."""
        loops.encode_tokens(
            x.flatten(0, 1).numpy(), len(x), self._encoder, self._manner, self._queried, _mask_of(padding)
        )

    def step(
        self,
        last: Tensor,
        place: int,
        caches: Sequence[KVCache],
        used: int,
        ancestry_mask: Tensor | None,
        memory: Sequence[KVCache],
        padding: Tensor | None,
        banned_ids: Tensor | None,
    ) -> Tensor:
        """The logits (N, V) after the newest words (N,), which stand at `place` in their sentences.

        With `never`, log-probabilities in their stead; none for the words in it.

        Their keys and values go into the pools from `used` on. `theirs` is (N, used + N / B); it, `memory`
        and `padding` are as in `CachedState`.
        """
        # Here NumPy arranges what little there is to arrange: it is quicker at that than PyTorch.
        asked = (
            last.numpy(), place, self._embedding, self._decoder, self._cross, self._manner,
            tuple(pool.array for pool in caches), used, NOTHING if ancestry_mask is None else ancestry_mask.numpy(),
            tuple(pool.array for pool in memory), _mask_of(padding),
        )  # fmt: skip
        rows, projection = len(last), self._projection
        if isinstance(projection, VNNILinear):
            logits = np.empty((rows, projection.outputs), np.float32)
            normalize, without = banned_ids is not None, NO_WORDS if banned_ids is None else banned_ids.numpy()
            loops.decode_and_project(logits, projection.map, normalize, without, asked)
            return torch.from_numpy(logits)
        x = np.empty((rows, self._embedding.table.shape[1]), np.float32)
        loops.decode_tokens(x, *asked)
        found = projection(torch.from_numpy(x))
        return found if banned_ids is None else compiled_log_softmax(found, banned_ids)

    def _stack(
        self,
        attentions: Sequence[MultiHeadAttention],
        thinking: Sequence[FeedForward],
        arounds: Sequence[Sequence[Residual]],
        closing: nn.Module,
    ) -> BlockWeights:
        norms = [[around.norm for around in of_block] for of_block in arounds]
        return BlockWeights(
            self._maps([part.query, part.key, part.value] for part in attentions),
            self._maps([part.output] for part in attentions),
            self._maps([part.inner] for part in thinking),
            self._maps([part.outer] for part in thinking),
            np.stack([[_array(norm.gain) for norm in of_block] for of_block in norms]),
            np.stack([[_array(norm.bias) for norm in of_block] for of_block in norms]),
            np.stack([_array(closing.gain), _array(closing.bias)]) if isinstance(closing, LayerNorm) else NOTHING,
        )

    def _maps(self, of_blocks: Iterable[Sequence[nn.Linear]]) -> FloatWeights | Int8Weights:
        """For each block one map in place of several of the same vector: their results side by side."""
        joined = [
            (torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]))
            for parts in of_blocks
        ]
        return pack_int8(joined) if self._bytes else pack_float32(joined, int8=self._int8)


class VNNILinear:
    """`F.linear(x, weight, bias)`, nearly, by VPDPBUSD."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.map = pack_int8([(weight, weight.new_zeros(len(weight)) if bias is None else bias)])
        self.outputs = len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """Shapes: (…, in) → (…, out)."""
        rows = x.numpy().reshape(-1, x.size(-1))
        result = np.empty((len(rows), self.outputs), np.float32)
        loops.map_rows(rows, self.map, result)
        return torch.from_numpy(result.reshape(*x.shape[:-1], -1))


def compiled_log_softmax(logits: Tensor, banned_ids: Tensor) -> Tensor:
    """The log-probabilities of logits (N, V), in their place; none for the words in `never`."""
    loops.log_softmax_rows(logits.numpy(), banned_ids.numpy())
    return logits


def compiled_top_continuations(
    totals: list[list[float]], log_probabilities: Tensor, count: int
) -> tuple[list[list[float]], list[list[int]], list[list[int]]]:
    """Of all continuations the best: their totals, which hypothesis each continues, with which word.

    Shapes: totals of hypotheses (B, beam), log-probabilities of the next words (B · beam, V) → three times
    (B, count), or as many as there are.
    """
    before = np.array(totals, np.float32)
    shape = len(before), min(count, before.shape[1] * log_probabilities.size(1))
    best, parents, words = np.empty(shape, np.float32), np.empty(shape, np.int64), np.empty(shape, np.int64)
    loops.top_continuations_rows(before, log_probabilities.numpy(), best, parents, words)
    return best.tolist(), parents.tolist(), words.tolist()


def has_vpdpbusd() -> bool:
    """Whether this processor multiplies 64 bytes by 64 at once."""
    return bool(llvm.get_host_cpu_features().get("avx512vnni", False))


def pack_float32(maps: Sequence[tuple[Tensor, Tensor]], *, int8: bool) -> FloatWeights:
    """Weights and biases of maps of one shape, for `loops.linear_float32`."""
    pairs = [quantize(weight.detach()) if int8 else (weight.detach(), torch.ones(len(weight))) for weight, _ in maps]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    return FloatWeights(_array(numbers), _array(scale), _array(torch.stack([bias for _, bias in maps])))


def pack_int8(maps: Sequence[tuple[Tensor, Tensor]]) -> Int8Weights:
    """Weights and biases of maps of one shape, for `loops.linear_int8`."""
    pairs = [quantize(weight.detach()) for weight, _ in maps]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    count, wide, deep = numbers.shape  # N, out, in
    whole = numbers.new_zeros(count, -(-wide // PANEL) * PANEL, -(-deep // 4) * 4)
    whole[:, :wide, :deep] = numbers
    panels = whole.view(count, -1, PANEL, whole.size(2) // 4, 4).transpose(2, 3).flatten(2)
    total = scale * numbers.sum(2, dtype=torch.float32)
    return Int8Weights(_array(panels), _array(scale), _array(total), _array(torch.stack([bias for _, bias in maps])))


def _mask_of(padding: Tensor | None) -> Array:
    return NOTHING if padding is None else padding.numpy()[:, 0, 0]


def _array(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().numpy()
