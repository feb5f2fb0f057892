"""The decoder's step as one call of machine code, `loops.py`, for models and batches small enough for it.

A step of a small model is some sixty small operations, and PyTorch takes longer to arrange each than
to do it. The first call compiles, for some seconds; what it makes is kept on disk.
"""

from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np
import torch
from torch import Tensor, nn

from .decoder import DecoderBlock
from .int8 import rounded
from .loops import ACTIVATIONS, PANEL, Array, Blocks, Bytes, Linear, Manner, project, write_words
from .normalization import LayerNorm
from .past import Pool
from .transformer import Transformer

WORTH = 20_000_000  # multiplications of a step; if it has more, PyTorch is quicker
WORTH_AS_BYTES = 100_000_000_000
WORTH_OF_ONE_MAP = 80_000_000  # of one large map by VPDPBUSD
NOTHING = np.empty((0, 0), np.float32)  # a mask that shuts nothing


class CompiledDecoder:
    """All blocks of the decoder of a trained `Transformer`, and its projection, on a processor."""

    def __init__(self, model: Transformer, *, int8: bool) -> None:
        blocks: Sequence[DecoderBlock] = list(model.decoder.layers)  # type: ignore[arg-type]
        first, self._bytes = blocks[0], int8 and has_vpdpbusd()

        def stacked(*maps: Callable[[DecoderBlock], nn.Linear]) -> Linear | Bytes:
            weights = [torch.cat([part(block).weight for part in maps]) for block in blocks]
            biases = [torch.cat([part(block).bias for part in maps]) for block in blocks]
            return as_bytes(weights, biases) if self._bytes else as_floats(weights, biases, int8=int8)

        norms = [
            [block.around_self_attention.norm, block.around_cross_attention.norm, block.around_feed_forward.norm]
            for block in blocks
        ]
        closing = (
            [model.decoder.norm.gain, model.decoder.norm.bias] if isinstance(model.decoder.norm, LayerNorm) else []
        )
        self._blocks = Blocks(
            stacked(lambda b: b.self_attention.query, lambda b: b.self_attention.key, lambda b: b.self_attention.value),
            stacked(lambda b: b.self_attention.output),
            stacked(lambda b: b.cross_attention.query),
            stacked(lambda b: b.cross_attention.output),
            stacked(lambda b: b.feed_forward.inner),
            stacked(lambda b: b.feed_forward.outer),
            np.stack([[_array(norm.gain) for norm in of_block] for of_block in norms]),
            np.stack([[_array(norm.bias) for norm in of_block] for of_block in norms]),
            np.stack([_array(part) for part in closing]) if closing else NOTHING,
            _array(model.target_embedding.table),
        )
        self._manner = Manner(
            first.self_attention.heads,
            first.around_feed_forward.norm_first,
            ACTIVATIONS.index(model.config.activation),
            first.around_feed_forward.norm.eps,
            model.config.d_model**0.5,
        )
        self._positions = _array(model.target_position.encoding)  # type: ignore[arg-type]
        self._size = sum(block.weight.numel() for block in model.decoder.modules() if isinstance(block, nn.Linear))

    def pay(self, rows: int, *, sentences: int) -> bool:
        """Whether a step of so many hypotheses is quicker here than in PyTorch."""
        multiplications = rows * self._size * torch.get_num_threads()
        return multiplications <= WORTH_AS_BYTES if self._bytes else sentences == 1 and multiplications <= WORTH

    def write(
        self,
        last: Tensor,
        place: int,
        pools: Sequence[Pool],
        used: int,
        theirs: Tensor | None,
        memory: Sequence[Pool],
        padding: Tensor | None,
    ) -> Tensor:
        """What the blocks make of the newest words (N,), whose keys and values go into the pools from `used` on.

        They stand at `place` in their sentences. `theirs` is (N, used + N / B); it, `memory` and
        `padding` are as in `FastState`. Returns (N, D).
        """
        x = torch.empty(len(last), self._positions.shape[1])
        write_words(
            last.numpy(), self._positions[place], self._blocks, self._manner,
            tuple(pool.array for pool in pools), used, NOTHING if theirs is None else theirs.numpy(),
            tuple(pool.array for pool in memory), NOTHING if padding is None else padding.numpy()[:, 0, 0],
            x.numpy(),
        )  # fmt: skip
        return x


class BytesMap:
    """`F.linear(x, weight, None)`, nearly, by VPDPBUSD for few rows of x; `otherwise` does it for many."""

    def __init__(self, weight: Tensor, *, otherwise: Callable[[Tensor], Tensor]) -> None:
        self._map, self._size, self._otherwise = (
            as_bytes([weight], [weight.new_zeros(len(weight))]),
            weight.numel(),
            otherwise,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Shapes: (R, in) → (R, out)."""
        if len(x) * self._size > WORTH_OF_ONE_MAP:
            return self._otherwise(x)
        result = torch.empty(len(x), self._map.scale.shape[1])
        project(x.numpy(), self._map, result.numpy())
        return result


def has_vpdpbusd() -> bool:
    """Whether this processor multiplies 64 bytes with 64 at once."""
    return bool(llvm.get_host_cpu_features().get("avx512vnni", False))


def as_floats(weights: Sequence[Tensor], biases: Sequence[Tensor], *, int8: bool) -> Linear:
    """Maps of one shape for `loops.of_floats`."""
    pairs = [rounded(weight.detach()) if int8 else (weight.detach(), torch.ones(len(weight))) for weight in weights]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    return Linear(_array(numbers), _array(scale), _array(torch.stack(list(biases))))


def as_bytes(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Bytes:
    """Maps of one shape for `loops.of_bytes`."""
    numbers, scale = (torch.stack(part) for part in zip(*(rounded(weight.detach()) for weight in weights), strict=True))
    count, wide, deep = numbers.shape  # N, out, in
    whole = numbers.new_zeros(count, -(-wide // PANEL) * PANEL, -(-deep // 4) * 4)
    whole[:, :wide, :deep] = numbers
    panels = whole.view(count, -1, PANEL, whole.size(2) // 4, 4).transpose(2, 3).flatten(2)
    total = scale * numbers.sum(2, dtype=torch.float32)
    return Bytes(_array(panels.contiguous()), _array(scale), _array(total), _array(torch.stack(list(biases))))


def _array(tensor: Tensor) -> Array:
    return tensor.detach().numpy()
