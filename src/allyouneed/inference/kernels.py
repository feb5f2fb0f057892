"""Reading, writing and choosing as plain loops, of which Numba makes machine code; `compiled.py` calls them.

`FastTransformer` is the definition, and a test holds this file to it. Maps are float32, or int8. Of
those the vectors are rounded, too, where the processor has VPDPBUSD, an instruction (x86, AVX-512
VNNI) that multiplies 64 pairs of bytes and adds them up by fours; on others each weight becomes a
float32 again. All loops stand in one file because Numba looks at no other to see whether what it
keeps on disk is still true.
"""

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

Array = NDArray[Any]
PANEL = 64  # outputs of a map that are worked out together by VPDPBUSD: four registers of 16 sums

_FAST_MATH = {"reassoc", "contract", "arcp", "nsz", "nnan"}  # no NaN, sums in any order
_jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST_MATH)


class FloatWeights(NamedTuple):
    """The same map of all N blocks: `scale` · `weight` is what is multiplied with."""

    weight: Array  # (N, out, in), float32 or int8
    scale: Array  # (N, out)
    bias: Array  # (N, out)


class Int8Weights(NamedTuple):
    """The same map of all N blocks, its int8 weights in the order in which VPDPBUSD takes them.

    A panel holds 64 outputs, the last one made up with zeros: for every four inputs the four weights
    of its first output, of its second, and so on.
    """

    panels: Array  # (N, out / 64, in · 64), int8; out and in rounded up to whole panels and fours
    scale: Array  # (N, out)
    total: Array  # (N, out): `scale` · the sum of an output's weights
    bias: Array  # (N, out)


class BlockWeights(NamedTuple):
    """What the N blocks of an encoder and those of a decoder have in common, and what stands after them."""

    qkv: FloatWeights | Int8Weights  # queries, keys and values
    output: FloatWeights | Int8Weights
    inner: FloatWeights | Int8Weights
    outer: FloatWeights | Int8Weights
    gain: Array  # (N, 2 or 3, D): around the sublayers, in their order
    bias: Array  # (N, 2 or 3, D)
    closing: Array  # (2, D): gain and bias of the norm that ends a stack of "pre"


class CrossAttentionWeights(NamedTuple):
    """What a decoder has besides, to look at the memory."""

    query: FloatWeights | Int8Weights
    output: FloatWeights | Int8Weights


class EmbeddingWeights(NamedTuple):
    """§3.4 and §3.5."""

    table: Array  # (V, D)
    scale: float
    positions: Array  # (L, D)


class BlockOptions(NamedTuple):
    """What else decides how a step is done."""

    heads: int
    norm_first: bool
    activation: int  # the place in `ACTIVATIONS`
    eps: float


ACTIVATIONS = ("relu", "gelu", "silu")


@_jit
def encode_tokens(
    x: Array, sentences: int, stack: BlockWeights, manner: BlockOptions, queried: int, padding: Array
) -> None:
    """§3.1, block by block: embedded sources (B · S, D) become the memory, in place.

    `padding` (B, S) is below 0 where nobody looks; of no rows, it shuts nothing. `queried` is H·K.
    """
    rows = len(x)
    length = rows // sentences
    all_three = np.empty((rows, output_width(stack.qkv)), np.float32)
    words = np.empty((sentences, length, output_width(stack.qkv) - queried), np.float32)
    seen = np.empty((rows, words.shape[2] - queried), np.float32)
    for n in range(len(stack.gain)):
        linear(pre_norm(x, stack, n, 0, manner), stack.qkv, n, all_three)
        for r in range(rows):
            words[r // length, r % length] = all_three[r, queried:]
        attend_rows(all_three, words, length, padding, manner.heads, queried, seen)
        add_and_norm(x, seen, stack.output, stack, n, 0, manner)
        feed_forward(x, stack, n, 1, manner)
    final_norm(x, stack, manner)


@_jit
def decode_tokens(
    x: Array,
    last: Array,
    place: int,
    embedding: EmbeddingWeights,
    stack: BlockWeights,
    cross: CrossAttentionWeights,
    manner: BlockOptions,
    caches: tuple[Array, ...],
    used: int,
    ancestry_mask: Array,
    memories: tuple[Array, ...],
    padding: Array,
) -> None:
    """§3.1, block by block: from the newest words of R hypotheses, (R,), at `place`, to what foretells the next, `x`.

    The R / B hypotheses of a sentence stand side by side. The words' keys and values go into the
    `pools`, each (B, room, H·K + H·Kv), from `used` on. `theirs` (R, used + R / B) and `padding` (B, S)
    are below 0 where nobody looks; of no rows, they attention_bias nothing. `memories` are (B, S, H·K + H·Kv).
    """
    rows = len(x)
    each = rows // len(memories[0])
    query = np.empty((rows, output_width(cross.query)), np.float32)
    queried = query.shape[1]  # H·K
    all_three = np.empty((rows, output_width(stack.qkv)), np.float32)
    seen = np.empty((rows, all_three.shape[1] - 2 * queried), np.float32)
    embed(last, place, embedding, x)
    for n in range(len(caches)):
        linear(pre_norm(x, stack, n, 0, manner), stack.qkv, n, all_three)
        for r in range(rows):
            caches[n][r // each, used + r % each] = all_three[r, queried:]
        attend_rows(all_three, caches[n], used + each, ancestry_mask, manner.heads, queried, seen)
        add_and_norm(x, seen, stack.output, stack, n, 0, manner)
        linear(pre_norm(x, stack, n, 1, manner), cross.query, n, query)
        attend_rows(query, memories[n], memories[n].shape[1], padding, manner.heads, queried, seen)
        add_and_norm(x, seen, cross.output, stack, n, 1, manner)
        feed_forward(x, stack, n, 2, manner)
    final_norm(x, stack, manner)


@_jit
def embed(words: Array, place: int, embedding: EmbeddingWeights, x: Array) -> None:
    """Words at a place of their sentences, (R,), into `x` (R, D)."""
    for r in range(len(words)):
        if not 0 <= words[r] < len(embedding.table):
            raise IndexError("an id is outside the vocabulary")
        for i in range(x.shape[1]):
            x[r, i] = np.float32(embedding.scale) * embedding.table[words[r], i] + embedding.positions[place, i]


@_jit
def pre_norm(x: Array, stack: BlockWeights, n: int, sublayer: int, manner: BlockOptions) -> Array:
    """What a sublayer of block `n` is given of `x` (R, D); see residual.py."""
    if not manner.norm_first:
        return x
    normed = np.empty_like(x)
    layer_norm_rows(x, stack.gain[n, sublayer], stack.bias[n, sublayer], manner.eps, normed)
    return normed


@_jit
def add_and_norm(
    x: Array,
    found: Array,
    maps: FloatWeights | Int8Weights,
    stack: BlockWeights,
    n: int,
    sublayer: int,
    manner: BlockOptions,
) -> None:
    """What becomes of `x`, in place, after the last of a sublayer's `maps` has mapped what it `found`."""
    more = np.empty_like(x)
    linear(found, maps, n, more)
    for r in range(len(x)):
        for i in range(x.shape[1]):
            x[r, i] += more[r, i]
    if not manner.norm_first:
        layer_norm_rows(x, stack.gain[n, sublayer], stack.bias[n, sublayer], manner.eps, x)


@_jit
def feed_forward(x: Array, stack: BlockWeights, n: int, sublayer: int, manner: BlockOptions) -> None:
    """The feed-forward network of block `n` (§3.3), with what stands around it, in place."""
    hidden = np.empty((len(x), output_width(stack.inner)), np.float32)
    linear(pre_norm(x, stack, n, sublayer, manner), stack.inner, n, hidden)
    activate(hidden, manner.activation)
    add_and_norm(x, hidden, stack.outer, stack, n, sublayer, manner)


@_jit
def final_norm(x: Array, stack: BlockWeights, manner: BlockOptions) -> None:
    """What ends a stack, in place."""
    if manner.norm_first:
        layer_norm_rows(x, stack.closing[0], stack.closing[1], manner.eps, x)


@_jit
def output_width(maps: FloatWeights | Int8Weights) -> int:
    """How many numbers such a map gives."""
    return int(maps.scale.shape[1])


def linear(x: Array, maps: FloatWeights | Int8Weights, n: int, result: Array) -> None:
    """Map number `n` of (R, in), into `result` (R, out)."""
    raise NotImplementedError("only in compiled code")


@overload(linear, jit_options={"error_model": "numpy", "fastmath": _FAST_MATH}, strict=False)
def _linear(x: Any, maps: Any, n: Any, result: Any) -> Callable[..., None]:
    return linear_int8 if maps.instance_class is Int8Weights else linear_float32


def linear_float32(x: Array, maps: FloatWeights, n: int, result: Array) -> None:
    """Of four rows two results at a time, so that what was loaded is of use more than once."""
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


def linear_int8(x: Array, maps: Int8Weights, n: int, result: Array) -> None:
    """Each row is rounded to 256 steps between its least and greatest number, four rows go through a panel at once.

    A number is then about lowest + step · byte, so its product with a weight is lowest · weight + step · byte · weight.
    """
    rows, width = x.shape
    fours = (width + 3) // 4
    rounded = np.zeros((rows, 4 * fours), np.uint8)
    steps, lows = np.empty(rows, np.float32), np.empty(rows, np.float32)
    for r in range(rows):
        low, high = minimum_and_maximum(x[r])
        step = max((high - low) / np.float32(255), np.float32(1e-30))
        shrink = np.float32(1) / step
        for i in range(width):
            rounded[r, i] = np.uint8(np.int32((x[r, i] - low) * shrink + np.float32(0.5)))
        steps[r], lows[r] = step, low
    sums = np.empty((4, PANEL), np.int32)
    scale, total, bias = maps.scale[n], maps.total[n], maps.bias[n]
    for panel in range(maps.panels.shape[1]):
        weights = maps.panels[n, panel].ctypes.data
        begin = PANEL * panel
        count = min(PANEL, len(scale) - begin)
        r = 0
        while r < rows:
            together = 4 if rows - r >= 4 else 1
            if together == 4:
                multiply_four_rows(rounded[r].ctypes.data, 4 * fours, weights, fours, sums.ctypes.data)
            else:
                multiply_one_row(rounded[r].ctypes.data, 4 * fours, weights, fours, sums.ctypes.data)
            for k in range(together):
                step, low = steps[r + k], lows[r + k]
                for o in range(count):
                    p = begin + o
                    result[r + k, p] = np.float32(sums[k, o]) * step * scale[p] + low * total[p] + bias[p]
            r += together


@_jit
def minimum_and_maximum(row: Array) -> tuple[Any, Any]:
    """Of float32 numbers and 0, by way of their bits: the positive rise with them, and so do the negative, downwards.

    A processor compares many whole numbers at once; of floats, Numba lets it compare one after the other.
    """
    high = maximum_integer(row.view(np.int32), np.int32(0))
    low = maximum_integer(row.view(np.uint32), np.uint32(2**31))
    return np.uint32(low).view(np.float32), np.int32(high).view(np.float32)


@_jit
def maximum_integer(numbers: Array, least: Any) -> Any:
    """The greatest of some whole numbers and `least`."""
    for i in range(len(numbers)):
        least = numbers[i] if numbers[i] > least else least  # `max` would make 64 bits of them
    return least


def _multiply(rows: int) -> Any:
    """Compiled code for (bytes of `rows` rows) × (a panel of weights) → sums (rows, 64), all given as addresses.

    sums[r, o] = Σ byte[r, 4 · four + i] · weight[four, o, i] over all fours and i = 0 … 3.
    """

    @intrinsic
    def multiply(
        _: Any, rounded: Any, row_bytes: Any, weights: Any, fours: Any, sums: Any
    ) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rounded, row_bytes, weights, fours, sums = arguments
            register = ir.VectorType(ir.IntType(32), 16)
            instruction = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(register, [register] * 3), "llvm.x86.avx512.vpdpbusd.512"
            )
            zero = ir.Constant(register, None)

            def at(address: Any, times: Any, size: Any, kind: Any) -> Any:
                return builder.inttoptr(builder.add(address, builder.mul(times, size)), kind.as_pointer())

            def number(value: int) -> Any:
                return ir.Constant(ir.IntType(64), value)

            totals = [[cgutils.alloca_once_value(builder, zero) for _ in range(4)] for _ in range(rows)]  # type: ignore[no-untyped-call]
            with cgutils.for_range(builder, fours) as loop:
                panel = builder.add(weights, builder.mul(loop.index, number(4 * PANEL)))
                of_panel = [builder.load(at(panel, number(j), number(64), register), align=1) for j in range(4)]
                here = builder.add(rounded, builder.mul(loop.index, number(4)))
                for r in range(rows):
                    four = builder.load(at(here, number(r), row_bytes, ir.IntType(32)), align=4)
                    repeated = builder.shuffle_vector(
                        builder.insert_element(zero, four, ir.Constant(ir.IntType(32), 0)), zero, zero
                    )
                    for total, some in zip(totals[r], of_panel, strict=True):
                        builder.store(builder.call(instruction, [builder.load(total), repeated, some]), total)
            for place, total in enumerate(chain(*totals)):
                builder.store(builder.load(total), at(sums, number(place), number(64), register), align=4)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 5), generate

    return multiply


multiply_one_row, multiply_four_rows = _multiply(1), _multiply(4)


@_jit
def attend_rows(query: Array, words: Array, length: int, mask: Array, heads: int, queried: int, result: Array) -> None:
    """Equation 1; where the mask is below 0, nobody looks.

    Shapes: query (R, H·K …), the first `length` of words (B, …, H·K + H·Kv), mask (R or B, length) or no
    rows, result (R, H·Kv). `queried` is H·K.
    """
    rows = len(result)
    each = rows // len(words)
    wide, deep = queried // heads, result.shape[1] // heads  # K and Kv
    weights = np.zeros(length + 3, np.float32)
    visible = np.zeros(length + 3, np.int64)
    shrunk = np.float32(1 / math.sqrt(wide))
    for r in range(rows):
        past, its_mask, seen = words[r // each], r * len(mask) // rows, 0
        for j in range(length):
            if len(mask) == 0 or mask[its_mask, j] >= 0:
                visible[seen] = j
                seen += 1
        visible[seen : seen + 3] = 0  # four at a time; the last may see something twice, with a weight of 0
        for h in range(heads):
            asked = query[r, h * wide : (h + 1) * wide]
            for k in range(0, seen, 4):
                first, second = past[visible[k], h * wide :], past[visible[k + 1], h * wide :]
                third, fourth = past[visible[k + 2], h * wide :], past[visible[k + 3], h * wide :]
                a = b = c = d = np.float32(0)
                for i in range(wide):
                    a += asked[i] * first[i]
                    b += asked[i] * second[i]
                    c += asked[i] * third[i]
                    d += asked[i] * fourth[i]
                weights[k], weights[k + 1], weights[k + 2], weights[k + 3] = a, b, c, d
            most = np.float32(-np.inf)
            for k in range(seen):
                most = max(most, weights[k])
            total = np.float32(0)
            for k in range(seen):
                weights[k] = exponential((weights[k] - most) * shrunk)
                total += weights[k]
            weights[seen : seen + 3] = 0
            mean = result[r, h * deep : (h + 1) * deep]
            mean[:] = 0
            begin = queried + h * deep
            for k in range(0, seen, 4):
                first, second = past[visible[k], begin:], past[visible[k + 1], begin:]
                third, fourth = past[visible[k + 2], begin:], past[visible[k + 3], begin:]
                a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                for i in range(deep):
                    mean[i] += a * first[i] + b * second[i] + c * third[i] + d * fourth[i]
            for i in range(deep):
                mean[i] /= total


@_jit
def exponential(x: Any) -> Any:
    """exp(x), float32, for x ≤ 0, in operations that a processor does for many numbers at once.

    With n the whole number nearest to x / ln 2, it is 2ⁿ · exp(x − n · ln 2); a float's bits hold n, and
    a series has the rest. Right to 10⁻⁶ of itself down to −87, where it ends.
    """
    x = max(x, np.float32(-87))
    n = np.int32(x * np.float32(1 / math.log(2)) - np.float32(0.5))
    f = x - np.float32(n) * np.float32(math.log(2))
    series = np.float32(1 / 120) + f * np.float32(1 / 720)
    series = np.float32(1 / 6) + f * (np.float32(1 / 24) + f * series)
    series = np.float32(1) + f * (np.float32(1) + f * (np.float32(0.5) + f * series))
    return series * np.int32((n + 127) << 23).view(np.float32)


@_jit
def layer_norm_rows(x: Array, gain: Array, bias: Array, eps: float, result: Array) -> None:
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


@_jit
def map_rows(x: Array, maps: FloatWeights | Int8Weights, result: Array) -> None:
    """The first of some maps alone: (R, in), into `result` (R, out)."""
    linear(x, maps, 0, result)


@_jit
def decode_and_project(
    found: Array, projection: FloatWeights | Int8Weights, normalize: bool, banned_ids: Array, asked: tuple[Any, ...]
) -> None:
    """`decode_tokens` of what is `asked`, and then the logits (R, V), or log-probabilities, as `log_softmax`."""
    last, _, embedding = asked[:3]
    x = np.empty((len(last), embedding.table.shape[1]), np.float32)
    decode_tokens(x, *asked)
    linear(x, projection, 0, found)
    if normalize:
        log_softmax_rows(found, banned_ids)


@_jit
def log_softmax_rows(logits: Array, banned_ids: Array) -> None:
    """Of each row (R, V), in place, with no probability for the words in `never`."""
    for r in range(len(logits)):
        row = logits[r]
        for word in banned_ids:
            row[word] = -np.inf
        most = maximum_float(row.view(np.int32))
        total = np.float32(0)
        for i in range(len(row)):
            total += exponential(row[i] - most)
        shift = most + np.float32(math.log(total))
        for i in range(len(row)):
            row[i] -= shift


@_jit
def maximum_float(bits: Array) -> Any:
    """The highest of some float32, by way of their bits, of which all but the sign of the negative are turned round."""
    most = np.int32(-(2**31))
    for i in range(len(bits)):
        number = np.int32(bits[i] ^ ((bits[i] >> 31) & np.int32(0x7FFFFFFF)))
        most = number if number > most else most
    return np.int32(most ^ ((most >> 31) & np.int32(0x7FFFFFFF))).view(np.float32)


@_jit
def top_continuations_rows(totals: Array, log_probabilities: Array, best: Array, parents: Array, words: Array) -> None:
    """Of all continuations of `totals` (B, beam) by log-probabilities (B · beam, V) the best, into three (B, count).

    What is there to be found is kept in order; 64 words are passed over at once if none of them is among it.
    """
    sentences, beam = totals.shape
    vocabulary = log_probabilities.shape[1]
    best[:], parents[:], words[:] = -np.inf, 0, 0
    for b in range(sentences):
        found = best[b]
        last = len(found) - 1
        for k in range(beam):
            total, row = totals[b, k], log_probabilities[b * beam + k]
            for begin in range(0, vocabulary, 64):
                some = row[begin : begin + 64]
                better = np.int32(0)
                for i in range(len(some)):
                    better += np.int32(total + some[i] > found[last])
                if better == 0:
                    continue
                for i in range(len(some)):
                    candidate = total + some[i]
                    if candidate <= found[last]:
                        continue
                    place = last
                    while place > 0 and found[place - 1] < candidate:
                        found[place] = found[place - 1]
                        parents[b, place], words[b, place] = parents[b, place - 1], words[b, place - 1]
                        place -= 1
                    found[place], parents[b, place], words[b, place] = candidate, k, begin + i
