"""The decoder's blocks as plain loops, for the hypotheses of one sentence; Numba makes machine code of them.

A step of a small model for one sentence is some sixty small operations, and PyTorch takes longer to
arrange each than to do it. Here a step is one call. `FastTransformer` is the definition, and a test
holds this file to it. Weights are float32, or int8 as `int8.rounded` makes them, but vectors are not
rounded. The first call compiles, for some seconds; what it makes is kept on disk beside this file.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .decoder import DecoderBlock
from .int8 import rounded
from .past import Pool

Array = NDArray[Any]
WORTH = 20_000_000  # multiplications; if a step has more of them, PyTorch is quicker
ACTIVATIONS = ("relu", "gelu", "silu")

_jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})


class Linear(NamedTuple):
    """The same map of all N blocks: `scale` · `weight` is what is multiplied with. Of few rows, four at a time."""

    weight: Array  # (N, out, in), float32 or int8
    scale: Array  # (N, out)
    bias: Array  # (N, out)


class Blocks(NamedTuple):
    """All weights of N blocks."""

    all_three: Linear
    output: Linear
    query: Linear
    cross_output: Linear
    inner: Linear
    outer: Linear
    gain: Array  # (N, 3, D): around self-attention, cross-attention and feed-forward
    bias: Array  # (N, 3, D)


class Loops:
    """All blocks of a decoder at once."""

    def __init__(self, blocks: Sequence[DecoderBlock], *, activation: str, int8: bool) -> None:
        first = blocks[0]
        self._heads, self._activation = first.self_attention.heads, ACTIVATIONS.index(activation)
        self._first = first.around_feed_forward.norm_first
        self._eps = first.around_feed_forward.norm.eps

        def stacked(*maps: Callable[[DecoderBlock], nn.Linear]) -> Linear:
            return _linear(
                [torch.cat([part(block).weight for part in maps]) for block in blocks],
                [torch.cat([part(block).bias for part in maps]) for block in blocks],
                int8=int8,
            )

        norms = [
            [
                around.norm
                for around in (block.around_self_attention, block.around_cross_attention, block.around_feed_forward)
            ]
            for block in blocks
        ]
        self._blocks = Blocks(
            stacked(lambda b: b.self_attention.query, lambda b: b.self_attention.key, lambda b: b.self_attention.value),
            stacked(lambda b: b.self_attention.output),
            stacked(lambda b: b.cross_attention.query),
            stacked(lambda b: b.cross_attention.output),
            stacked(lambda b: b.feed_forward.inner),
            stacked(lambda b: b.feed_forward.outer),
            np.stack([[norm.gain.detach().numpy() for norm in of_block] for of_block in norms]),
            np.stack([[norm.bias.detach().numpy() for norm in of_block] for of_block in norms]),
        )
        self._size = sum(part.weight.size for part in self._blocks if isinstance(part, Linear))

    def pay(self, rows: int) -> bool:
        """Whether so many hypotheses are few enough."""
        return rows * self._size * torch.get_num_threads() <= WORTH

    def __call__(
        self,
        x: Tensor,
        pools: Sequence[Pool],
        used: int,
        theirs: Tensor | None,
        memory: Sequence[Pool],
        padding: Tensor | None,
    ) -> Tensor:
        """What the blocks make of the newest words (R, D), whose keys and values go into the pools from `used` on.

        `theirs` is (R, used + R); it, `memory` and `padding` are as in `FastState`.
        """
        result = x.clone()
        shut = torch.zeros(1, used + len(x)) if theirs is None else theirs
        hidden = torch.zeros(1, memory[0].used) if padding is None else padding[0, 0]
        write_words(
            result.numpy(), self._blocks, tuple(pool.array for pool in pools), used, shut.numpy(),
            tuple(pool.array for pool in memory), hidden.numpy(),
            self._heads, self._first, self._activation, self._eps,
        )  # fmt: skip
        return result


def _linear(weights: list[Tensor], biases: list[Tensor], *, int8: bool) -> Linear:
    pairs = [rounded(weight.detach()) if int8 else (weight.detach(), torch.ones(len(weight))) for weight in weights]
    numbers, scale = (torch.stack(part) for part in zip(*pairs, strict=True))
    return Linear(numbers.numpy(), scale.numpy(), torch.stack(biases).detach().numpy())


@_jit
def write_words(
    x: Array,
    blocks: Blocks,
    pools: tuple[Array, ...],
    used: int,
    theirs: Array,
    memories: tuple[Array, ...],
    padding: Array,
    heads: int,
    norm_first: bool,
    activation: int,
    eps: float,
) -> None:
    """§3.1, block by block: `x` (R, D) becomes what comes out of the last."""
    rows, width = x.shape
    queried, looking = blocks.query.weight.shape[1], blocks.output.weight.shape[2]
    all_three = np.empty((rows, blocks.all_three.weight.shape[1]), np.float32)
    query = np.empty((rows, queried), np.float32)
    seen = np.empty((rows, looking), np.float32)
    wide, deep = queried // heads, looking // heads  # K and Kv
    hidden = np.empty((rows, blocks.inner.weight.shape[1]), np.float32)
    more = np.empty((rows, width), np.float32)
    normed = np.empty((rows, width), np.float32)
    for n in range(len(pools)):
        given = x
        if norm_first:
            normalize(x, blocks.gain[n, 0], blocks.bias[n, 0], eps, normed)
            given = normed
        linear(given, blocks.all_three, n, all_three)
        pools[n][used : used + rows] = all_three[:, queried:]
        attend(all_three, pools[n], theirs, heads, wide, deep, seen)
        linear(seen, blocks.output, n, more)
        add(x, more)
        if norm_first:
            normalize(x, blocks.gain[n, 1], blocks.bias[n, 1], eps, normed)
        else:
            normalize(x, blocks.gain[n, 0], blocks.bias[n, 0], eps, x)
        linear(given, blocks.query, n, query)
        attend(query, memories[n], padding, heads, wide, deep, seen)
        linear(seen, blocks.cross_output, n, more)
        add(x, more)
        if norm_first:
            normalize(x, blocks.gain[n, 2], blocks.bias[n, 2], eps, normed)
        else:
            normalize(x, blocks.gain[n, 1], blocks.bias[n, 1], eps, x)
        linear(given, blocks.inner, n, hidden)
        activate(hidden, activation)
        linear(hidden, blocks.outer, n, more)
        add(x, more)
        if not norm_first:
            normalize(x, blocks.gain[n, 2], blocks.bias[n, 2], eps, x)


@_jit
def linear(x: Array, maps: Linear, n: int, result: Array) -> None:
    """Map number `n`: of four rows two results at a time, so that what was loaded is of use more than once."""
    rows, width = x.shape
    for o in range(0, result.shape[1], 2):
        p = min(o + 1, result.shape[1] - 1)
        first, second = maps.weight[n, o], maps.weight[n, p]
        for r in range(0, rows - 3, 4):
            a = b = c = d = np.float32(0)
            e = f = g = h = np.float32(0)
            for i in range(width):
                v, w = np.float32(first[i]), np.float32(second[i])
                a += v * x[r, i]
                b += v * x[r + 1, i]
                c += v * x[r + 2, i]
                d += v * x[r + 3, i]
                e += w * x[r, i]
                f += w * x[r + 1, i]
                g += w * x[r + 2, i]
                h += w * x[r + 3, i]
            scale, bias = maps.scale[n, o], maps.bias[n, o]
            result[r, o], result[r + 1, o] = a * scale + bias, b * scale + bias
            result[r + 2, o], result[r + 3, o] = c * scale + bias, d * scale + bias
            scale, bias = maps.scale[n, p], maps.bias[n, p]
            result[r, p], result[r + 1, p] = e * scale + bias, f * scale + bias
            result[r + 2, p], result[r + 3, p] = g * scale + bias, h * scale + bias
        for r in range(rows - rows % 4, rows):
            a = b = np.float32(0)
            for i in range(width):
                a += np.float32(first[i]) * x[r, i]
                b += np.float32(second[i]) * x[r, i]
            result[r, o] = a * maps.scale[n, o] + maps.bias[n, o]
            result[r, p] = b * maps.scale[n, p] + maps.bias[n, p]


@_jit
def attend(query: Array, words: Array, mask: Array, heads: int, wide: int, deep: int, result: Array) -> None:
    """Equation 1; where the mask is below 0, nobody looks.

    Shapes: query (R, H·K …), words (L …, H·K + H·Kv), mask (R or 1, L), result (R, H·Kv).
    """
    length = mask.shape[1]
    weights = np.empty(length, np.float32)
    shrunk = np.float32(1 / math.sqrt(wide))
    for r in range(len(result)):
        shut = mask[r % len(mask)]
        for h in range(heads):
            most = np.float32(-np.inf)
            for j in range(length):
                if shut[j] < 0:
                    continue
                score = np.float32(0)
                for i in range(h * wide, h * wide + wide):
                    score += query[r, i] * words[j, i]
                weights[j] = score * shrunk
                most = max(most, weights[j])
            total = np.float32(0)
            mean = result[r, h * deep : (h + 1) * deep]
            mean[:] = 0
            for j in range(length):
                if shut[j] < 0:
                    continue
                weight = math.exp(weights[j] - most)
                total += weight
                value = words[j, heads * wide + h * deep : heads * wide + (h + 1) * deep]
                for i in range(deep):
                    mean[i] += weight * value[i]
            for i in range(deep):
                mean[i] /= total


@_jit
def normalize(x: Array, gain: Array, bias: Array, eps: float, result: Array) -> None:
    """As in normalization.py."""
    rows, width = x.shape
    for r in range(rows):
        mean = np.float32(0)
        for i in range(width):
            mean += x[r, i]
        mean /= np.float32(width)
        variance = np.float32(0)
        for i in range(width):
            variance += (x[r, i] - mean) * (x[r, i] - mean)
        shrunk = np.float32(1 / math.sqrt(variance / np.float32(width) + eps))
        for i in range(width):
            result[r, i] = (x[r, i] - mean) * shrunk * gain[i] + bias[i]


@_jit
def add(x: Array, more: Array) -> None:
    """In place."""
    for r in range(len(x)):
        for i in range(x.shape[1]):
            x[r, i] += more[r, i]


@_jit
def activate(x: Array, activation: int) -> None:
    """In place, number so many of `ACTIVATIONS`."""
    for r in range(len(x)):
        for i in range(x.shape[1]):
            v = x[r, i]
            if activation == 0:
                x[r, i] = max(v, np.float32(0))
            elif activation == 1:
                x[r, i] = np.float32(0.5) * v * np.float32(1 + math.erf(v * math.sqrt(0.5)))
            else:
                x[r, i] = v / np.float32(1 + math.exp(-v))
