"""The kernels: encoder, decoder and the choice of continuations as plain loops, which Numba compiles (compiled.py).

`EagerEngine` is the definition, and a test holds this file to it. Weights are float32 or int8. With int8
weights the inputs are quantized, too: pairs of bytes are multiplied, and the products added in fours, by one
instruction (AVX-512 VNNI, AVX-VNNI, NEON) or by three (AVX2).

Sums of floats are computed in float64 and rounded to float32 once, so their order, which differs between the engines
and is up to the compiler, does not change the result (docs/measured/decoding-speed.md). Quantizing is done in float32
without fast math, operation by operation as in quantization.py.

All kernels are in one file because Numba compiles anew only when the file of a function changes, whatever it calls.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from ..younger.query_key_norm import EPS

Array = NDArray[Any]

_FAST_MATH = {"reassoc", "contract", "arcp", "nsz", "nnan"}  # no NaN, sums in any order
_jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST_MATH)
# Without this option a kernel inherits the fast math of the kernel that calls it.
_jit_exact = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


class FloatWeights(NamedTuple):
    """The same linear map of all N blocks."""

    weight: Array  # (N, out, in)
    bias: Array  # (N, out)
    outputs: int


class Int8Weights(NamedTuple):
    """The same linear map of all N blocks, its int8 weights in the order in which the instructions read them.

    A panel holds the weights of some outputs; the last panel is padded with zeros. For every four inputs it has the
    four weights of its first output, then those of its second, and so on. After the weights come, in float32, the
    scales of its outputs, then of each output scale · the sum of its weights, then the biases. So a panel is read from
    its first byte to its last. The type says which instructions multiply.
    """

    panels: Array  # (N, panels, (in + 12) · outputs of a panel), int8; in up to whole fours
    outputs: int
    greatest: Any  # float32: the level of the greatest input of a row


class Layout(NamedTuple):
    """How a kind of `Int8Weights` is stored and multiplied."""

    lanes: int  # sums in a register
    registers: int  # of sums, for a panel
    at_once: int  # how many of these are computed together for four rows: all sums have to stay in registers

    @property
    def outputs(self) -> int:
        """Of a panel."""
        return self.lanes * self.registers


class VNNIWeights(Int8Weights):
    """For VPDPBUSD on registers of 64 bytes (AVX-512 VNNI); inputs have 8 bits."""


class AVXVNNIWeights(Int8Weights):
    """For VPDPBUSD on registers of 32 bytes (AVX-VNNI); inputs have 7 bits, as PyTorch's have on such a processor."""


class AVX2Weights(Int8Weights):
    """For VPMADDUBSW, VPMADDWD and VPADDD on registers of 32 bytes; inputs have 7 bits.

    VPMADDUBSW adds two products in 16 bits, which 8 bits could overflow: 2 · 255 · 127 > 32,767 > 2 · 127 · 127.
    """


class NEONWeights(Int8Weights):
    """For SDOT on registers of 16 bytes (ARM); inputs have 7 bits, so that they are not negative as signed bytes."""


LAYOUTS: dict[type[Int8Weights], Layout] = {
    VNNIWeights: Layout(lanes=16, registers=4, at_once=4),
    AVXVNNIWeights: Layout(lanes=8, registers=8, at_once=2),
    AVX2Weights: Layout(lanes=8, registers=2, at_once=2),
    NEONWeights: Layout(lanes=4, registers=16, at_once=4),
}


class BlockWeights(NamedTuple):
    """The weights that blocks of an encoder and of a decoder have in common, and those of the final norm."""

    qkv: FloatWeights | Int8Weights  # queries, keys and values
    output: FloatWeights | Int8Weights
    inner: FloatWeights | Int8Weights
    outer: FloatWeights | Int8Weights
    gain: Array  # (N, 2 or 3, D): of the norm of each sublayer, in their order
    bias: Array  # (N, 2 or 3, D)
    closing: Array  # (2, D): gain and bias of the final norm of a "pre" stack
    query_key_gains: Array  # (N, 2, K): of query-key norm, for queries and for keys; (N, 0, K) without it
    rotation: Array  # (L, 2, K / 2): `adjustment.rotation_table`; (0, 2, 0) without rotary positions


class CrossAttentionWeights(NamedTuple):
    """The weights of cross-attention; keys and values of the memory are projected before."""

    query: FloatWeights | Int8Weights
    output: FloatWeights | Int8Weights


class EmbeddingWeights(NamedTuple):
    """§3.4 and §3.5."""

    table: Array  # (V, D)
    scale: float
    positions: Array  # (L, D)


class BlockOptions(NamedTuple):
    """Settings of the blocks."""

    heads: int
    norm_first: bool
    activation: int  # index in `ACTIVATION_NAMES`
    eps: float


ACTIVATION_NAMES = ("relu", "gelu", "silu")


@_jit
def encode_tokens(
    x: Array, sentences: int, stack: BlockWeights, options: BlockOptions, query_width: int, padding: Array
) -> None:
    """§3.1, block by block: embedded sources (B · S, D) become the memory, in place.

    `padding` (B, S) is an attention bias: below 0 at padding; with no rows, there is none. `query_width` is H·K.
    """
    rows = len(x)
    length = rows // sentences
    qkv = np.empty((rows, stack.qkv.outputs), np.float32)
    keys_and_values = np.empty((sentences, length, stack.qkv.outputs - query_width), np.float32)
    attended = np.empty((rows, keys_and_values.shape[2] - query_width), np.float32)
    in_order = np.empty(0, np.int64)
    positions = np.arange(rows) % length
    for n in range(len(stack.gain)):
        linear(pre_norm(x, stack, n, 0, options), stack.qkv, n, qkv)
        adjust_rows(qkv, options.heads, stack.query_key_gains[n], positions, stack.rotation)
        for r in range(rows):
            keys_and_values[r // length, r % length] = qkv[r, query_width:]
        attend_rows(qkv, keys_and_values, in_order, length, padding, options.heads, query_width, attended)
        add_and_norm(x, attended, stack.output, stack, n, 0, options)
        feed_forward(x, stack, n, 1, options)
    final_norm(x, stack, options)


@_jit
def decode_tokens(
    x: Array,
    last: Array,
    positions: Array,
    embedding: EmbeddingWeights,
    stack: BlockWeights,
    cross: CrossAttentionWeights,
    options: BlockOptions,
    caches: Array,
    cache_shape: tuple[int, int, int],
    used: int,
    ancestry_mask: Array,
    memories: Array,
    memory_shape: tuple[int, int, int],
    padding: Array,
    cache_rows: Array,
) -> None:
    """§3.1, block by block: from the last tokens of R hypotheses, (R,), to hidden states `x` (R, D).

    The R / B hypotheses of a sentence are side by side, all at its one of `positions` (B,). `caches` and `memories`
    (N,) are the addresses of each block's KV cache, (B or more, capacity, H·K + H·Kv), and keys and values of the
    memory, (B or more, S or more, H·K + H·Kv): arrays of addresses, because Numba would compile tuples of arrays again
    for every number of blocks. `cache_rows` (B,) are the rows of the sentences in these; with none, they are in order.
    The keys and values of the last tokens are written into the caches from `used` on. `ancestry_mask` (R, used + R / B)
    and `padding` (B, S) are attention biases: below 0 where attention is masked; with no rows, nothing is.
    """
    rows = len(x)
    hypotheses = rows // len(positions)
    source_length = padding.shape[1] if len(padding) else memory_shape[1]
    query = np.empty((rows, cross.query.outputs), np.float32)
    query_width = query.shape[1]  # H·K
    qkv = np.empty((rows, stack.qkv.outputs), np.float32)
    attended = np.empty((rows, qkv.shape[1] - 2 * query_width), np.float32)
    embed(last, positions, embedding, x)
    for n in range(len(caches)):
        cache = carray(float32_pointer(caches[n]), cache_shape)
        memory = carray(float32_pointer(memories[n]), memory_shape)
        linear(pre_norm(x, stack, n, 0, options), stack.qkv, n, qkv)
        adjust_rows(qkv, options.heads, stack.query_key_gains[n], positions, stack.rotation)
        for r in range(rows):
            sentence = r // hypotheses
            row = cache_rows[sentence] if len(cache_rows) else sentence
            cache[row, used + r % hypotheses] = qkv[r, query_width:]
        attend_rows(qkv, cache, cache_rows, used + hypotheses, ancestry_mask, options.heads, query_width, attended)
        add_and_norm(x, attended, stack.output, stack, n, 0, options)
        linear(pre_norm(x, stack, n, 1, options), cross.query, n, query)
        attend_rows(query, memory, cache_rows, source_length, padding, options.heads, query_width, attended)
        add_and_norm(x, attended, cross.output, stack, n, 1, options)
        feed_forward(x, stack, n, 2, options)
    final_norm(x, stack, options)


def _float32_pointer(_: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """An address as a pointer to float32, for `carray`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(types.intp), generate  # type: ignore[no-untyped-call]


float32_pointer: Any = intrinsic(_float32_pointer)


@_jit
def embed(tokens: Array, positions: Array, embedding: EmbeddingWeights, x: Array) -> None:
    """Embed tokens (R,), R / B of them at each of `positions` (B,), into `x` (R, D)."""
    for r in range(len(tokens)):
        position = positions[r * len(positions) // len(tokens)]
        if not 0 <= tokens[r] < len(embedding.table):
            raise IndexError("an id is outside the vocabulary")
        for i in range(x.shape[1]):
            embedded = np.float64(np.float32(embedding.scale)) * embedding.table[tokens[r], i]
            x[r, i] = embedded + embedding.positions[position, i]


@_jit
def pre_norm(x: Array, stack: BlockWeights, n: int, sublayer: int, options: BlockOptions) -> Array:
    """The input of a sublayer of block `n`: `x` (R, D), normalized if the norm is "pre"; see residual.py."""
    if not options.norm_first:
        return x
    normed = np.empty_like(x)
    layer_norm_rows(x, stack.gain[n, sublayer], stack.bias[n, sublayer], options.eps, normed)
    return normed


@_jit
def add_and_norm(
    x: Array,
    y: Array,
    maps: FloatWeights | Int8Weights,
    stack: BlockWeights,
    n: int,
    sublayer: int,
    options: BlockOptions,
) -> None:
    """Apply the last of a sublayer's linear maps to `y`, add the result to `x` in place, and normalize if "post"."""
    more = np.empty_like(x)
    linear(y, maps, n, more)
    for r in range(len(x)):
        for i in range(x.shape[1]):
            x[r, i] += more[r, i]
    if not options.norm_first:
        layer_norm_rows(x, stack.gain[n, sublayer], stack.bias[n, sublayer], options.eps, x)


@_jit
def feed_forward(x: Array, stack: BlockWeights, n: int, sublayer: int, options: BlockOptions) -> None:
    """The feed-forward network of block `n` (§3.3) with its residual connection and norm, in place."""
    hidden = np.empty((len(x), stack.inner.outputs), np.float32)
    linear(pre_norm(x, stack, n, sublayer, options), stack.inner, n, hidden)
    activate(hidden, options.activation)
    add_and_norm(x, hidden, stack.outer, stack, n, sublayer, options)


@_jit
def final_norm(x: Array, stack: BlockWeights, options: BlockOptions) -> None:
    """The norm after the last block of a "pre" stack, in place."""
    if options.norm_first:
        layer_norm_rows(x, stack.closing[0], stack.closing[1], options.eps, x)


def linear(x: Array, maps: FloatWeights | Int8Weights, n: int, result: Array) -> None:
    """The linear map of block `n` applied to `x` (R, in), into `result` (R, out)."""
    raise NotImplementedError("only in compiled code")


@overload(linear, strict=False)
def _linear(x: Any, maps: Any, n: Any, result: Any) -> Callable[..., None]:
    if issubclass(maps.instance_class, Int8Weights):
        return lambda x, maps, n, result: linear_int8(x, maps, n, result)
    return lambda x, maps, n, result: linear_float32(x, maps, n, result)


@_jit
def linear_float32(x: Array, maps: FloatWeights, n: int, result: Array) -> None:
    """Two outputs of four rows at a time, so that each number that is loaded is used more than once."""
    rows, width = x.shape
    for o in range(0, result.shape[1], 2):
        p = min(o + 1, result.shape[1] - 1)
        first, second = maps.weight[n, o], maps.weight[n, p]
        for r in range(0, rows - 3, 4):
            a = b = c = d = np.float32(0)
            e = f = g = h = np.float32(0)
            for i in range(width):
                v, w = first[i], second[i]
                a += v * x[r, i]
                b += v * x[r + 1, i]
                c += v * x[r + 2, i]
                d += v * x[r + 3, i]
                e += w * x[r, i]
                f += w * x[r + 1, i]
                g += w * x[r + 2, i]
                h += w * x[r + 3, i]
            bias = maps.bias[n, o]
            result[r, o], result[r + 1, o] = a + bias, b + bias
            result[r + 2, o], result[r + 3, o] = c + bias, d + bias
            bias = maps.bias[n, p]
            result[r, p], result[r + 1, p] = e + bias, f + bias
            result[r + 2, p], result[r + 3, p] = g + bias, h + bias
        for r in range(rows - rows % 4, rows):
            a = b = np.float32(0)
            for i in range(width):
                a += first[i] * x[r, i]
                b += second[i] * x[r, i]
            result[r, o] = a + maps.bias[n, o]
            result[r, p] = b + maps.bias[n, p]


@_jit_exact
def linear_int8(x: Array, maps: Int8Weights, n: int, result: Array) -> None:
    """Each row is quantized to levels between its least and greatest number; four rows share a pass over a panel.

    A number is then about low + step · level, so its product with a weight is low · weight + step · level · weight.
    """
    rows, width = x.shape
    wide, fours = panel_outputs(maps), (width + 3) // 4
    levels = np.zeros((rows, 4 * fours), np.uint8)
    steps = np.empty((rows, 2), np.float32)  # and lows
    for r in range(rows):
        low, high = minimum_and_maximum(x[r])
        step = max((high - low) / maps.greatest, np.float32(1e-30))
        shrink = np.float32(1) / step
        for i in range(width):
            levels[r, i] = np.uint8(np.int32((x[r, i] - low) * shrink + np.float32(0.5)))
        steps[r, 0], steps[r, 1] = step, low
    some = np.empty((4, wide), np.float32)
    for panel in range(maps.panels.shape[1]):
        weights = maps.panels[n, panel].ctypes.data
        begin = wide * panel
        count = min(wide, result.shape[1] - begin)
        r = 0
        while r < rows:
            together = 4 if rows - r >= 4 else 1
            to, to_bytes = some.ctypes.data, 4 * wide
            if count == wide:
                to, to_bytes = result[r, begin:].ctypes.data, 4 * result.shape[1]
            here, scales = levels[r].ctypes.data, steps[r].ctypes.data
            if together == 4:
                multiply_four_rows(maps, here, 4 * fours, scales, weights, fours, to, to_bytes)
            else:
                multiply_one_row(maps, here, 4 * fours, scales, weights, fours, to, to_bytes)
            if count < wide:
                result[r : r + together, begin:] = some[:together, :count]
            r += together


def panel_outputs(maps: Int8Weights) -> int:
    """The number of outputs of a panel."""
    return LAYOUTS[type(maps)].outputs


@overload(panel_outputs, strict=False)
def _panel_outputs(maps: Any) -> Callable[..., int]:
    outputs = LAYOUTS[maps.instance_class].outputs
    return lambda maps: outputs


@_jit
def minimum_and_maximum(row: Array) -> tuple[Any, Any]:
    """The least and the greatest of float32 numbers and 0, compared by their bits.

    As integers, the bits of positive floats are in the order of the floats, those of negative ones in reverse order.
    Numba's code compares many integers at once, but floats one after the other.
    """
    high = maximum_integer(row.view(np.int32), np.int32(0))
    low = maximum_integer(row.view(np.uint32), np.uint32(2**31))
    return np.uint32(low).view(np.float32), np.int32(high).view(np.float32)


@_jit
def maximum_integer(numbers: Array, least: Any) -> Any:
    """The greatest of some integers and `least`."""
    for i in range(len(numbers)):
        least = numbers[i] if numbers[i] > least else least  # `max` would make 64 bits of them
    return least


def _multiply(rows: int) -> Any:
    """Compiled code for the outputs of a panel of `rows` rows of inputs, all given as addresses.

    `steps` has the step and the least number of each row. An output is sum · step · scale + low · total + bias, where
    sum = Σ level · weight over all inputs. The type of `maps` says by which instructions.
    """

    @intrinsic
    def multiply(
        _: Any, maps: Any, levels: Any, row_bytes: Any, steps: Any, panel: Any, fours: Any, result: Any, to_bytes: Any
    ) -> tuple[Any, Callable[..., Any]]:
        kind = maps.instance_class
        lanes, registers, at_once_for_four = LAYOUTS[kind]
        at_once = min(registers, at_once_for_four * 4 // rows)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, levels, row_bytes, steps, panel, fours, result, to_bytes = arguments
            levels, steps, panel, result = (
                builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in (levels, steps, panel, result)
            )
            integers, floats = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.FloatType(), lanes)
            size, zero = 4 * lanes, ir.Constant(integers, None)  # bytes of a register

            def number(value: int) -> Any:
                return ir.Constant(ir.IntType(64), value)

            def plus(address: Any, times: Any, many: Any) -> Any:
                return builder.gep(address, [builder.mul(times, many)])

            def load(address: Any, kind: Any) -> Any:
                return builder.load(builder.bitcast(address, kind.as_pointer()), align=1)

            def repeat(address: Any, vector: Any) -> Any:
                empty = ir.Constant(vector, None)
                one = builder.insert_element(empty, load(address, vector.element), ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(one, empty, zero)

            numbers = plus(panel, fours, number(size * registers))  # what follows the weights
            for first in range(0, registers, at_once):
                totals = [[cgutils.alloca_once_value(builder, zero) for _ in range(at_once)] for _ in range(rows)]  # type: ignore[no-untyped-call]
                with cgutils.for_range(builder, fours) as loop:
                    weights = plus(panel, loop.index, number(size * registers))
                    some = [load(plus(weights, number(first + j), number(size)), integers) for j in range(at_once)]
                    for r in range(rows):
                        row = plus(levels, number(r), row_bytes)
                        repeated = repeat(plus(row, loop.index, number(4)), integers)
                        for total, one in zip(totals[r], some, strict=True):
                            builder.store(_add_products(builder, kind, builder.load(total), repeated, one), total)
                for j in range(first, first + at_once):
                    scale, weight_sum, bias = (
                        load(plus(numbers, number(part * registers + j), number(size)), floats) for part in range(3)
                    )
                    for r in range(rows):
                        step = plus(steps, number(r), number(8))
                        low = plus(step, number(1), number(4))
                        sums = builder.sitofp(builder.load(totals[r][j - first]), floats)
                        scaled = builder.fmul(builder.fmul(sums, repeat(step, floats)), scale)
                        shifted = builder.fadd(scaled, builder.fmul(repeat(low, floats), weight_sum))
                        to = plus(plus(result, number(r), to_bytes), number(j), number(size))
                        builder.store(builder.fadd(shifted, bias), builder.bitcast(to, floats.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.void(maps, *[types.intp] * 7), generate

    return multiply


def _add_products(builder: Any, kind: type[Int8Weights], total: Any, levels: Any, weights: Any) -> Any:
    """A register of sums, and to each the products of four bytes: `levels` without a sign, `weights` with one."""

    def call(name: str, result: Any, *arguments: Any) -> Any:
        function = ir.FunctionType(result, [argument.type for argument in arguments])
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)  # type: ignore[no-untyped-call]

    if issubclass(kind, VNNIWeights):
        return call("llvm.x86.avx512.vpdpbusd.512", total.type, total, levels, weights)
    if issubclass(kind, AVXVNNIWeights):  # the intrinsic has the name of AVX-512, and AVX-VNNI its own encoding
        return call("llvm.x86.avx512.vpdpbusd.256", total.type, total, levels, weights)
    register, pairs = ir.VectorType(ir.IntType(8), 4 * total.type.count), ir.VectorType(ir.IntType(16), 16)
    levels, weights = builder.bitcast(levels, register), builder.bitcast(weights, register)
    if issubclass(kind, NEONWeights):
        return call("llvm.aarch64.neon.sdot.v4i32.v16i8", total.type, total, levels, weights)
    sums_of_two = call("llvm.x86.avx2.pmadd.ub.sw", pairs, levels, weights)
    sums_of_four = call("llvm.x86.avx2.pmadd.wd", total.type, sums_of_two, ir.Constant(pairs, [1] * 16))
    return builder.add(total, sums_of_four)


multiply_one_row, multiply_four_rows = _multiply(1), _multiply(4)


@_jit
def attend_rows(
    query: Array,
    tokens: Array,
    token_rows: Array,
    length: int,
    mask: Array,
    heads: int,
    query_width: int,
    result: Array,
) -> None:
    """Equation 1, without the positions where the mask is below 0.

    Shapes: query (R, H·K …), the first `length` of tokens (B or more, …, H·K + H·Kv), of which those of the sentences
    are `token_rows` (B,) or with none all, mask (R or B, length) or no rows, result (R, H·Kv). `query_width` is H·K.
    """
    rows = len(result)
    hypotheses = rows // (len(token_rows) if len(token_rows) else len(tokens))
    wide, deep = query_width // heads, result.shape[1] // heads  # K and Kv
    weights = np.zeros((heads, length + 3), np.float64)
    visible = np.zeros(length + 3, np.int64)
    q, mean = np.empty(query_width, np.float64), np.empty(result.shape[1], np.float64)
    scale = 1 / math.sqrt(wide)
    for r in range(rows):
        sentence, mask_row, count = r // hypotheses, r * len(mask) // rows, 0
        cache = tokens[token_rows[sentence] if len(token_rows) else sentence]
        for j in range(length):
            if len(mask) == 0 or mask[mask_row, j] >= 0:
                visible[count] = j
                count += 1
        visible[count : count + 3] = 0  # four at a time; the last four may repeat a position, with a weight of 0
        for i in range(query_width):
            q[i] = query[r, i]
        for k in range(0, count, 4):  # positions before heads: so the cache is read in the order of its memory
            first, second = cache[visible[k]], cache[visible[k + 1]]
            third, fourth = cache[visible[k + 2]], cache[visible[k + 3]]
            for h in range(heads):
                begin = h * wide
                part, one, two, three, four = q[begin:], first[begin:], second[begin:], third[begin:], fourth[begin:]
                a = b = c = d = 0.0
                for i in range(wide):
                    a += part[i] * one[i]
                    b += part[i] * two[i]
                    c += part[i] * three[i]
                    d += part[i] * four[i]
                weights[h, k], weights[h, k + 1], weights[h, k + 2], weights[h, k + 3] = a, b, c, d
        for h in range(heads):
            highest, total = -np.inf, 0.0
            for k in range(count):
                highest = max(highest, weights[h, k])
            for k in range(count):
                weights[h, k] = exponential((weights[h, k] - highest) * scale)
                total += weights[h, k]
            for k in range(count):
                weights[h, k] /= total
            weights[h, count : count + 3] = 0
        mean[:] = 0
        for k in range(0, count, 4):
            first, second = cache[visible[k], query_width:], cache[visible[k + 1], query_width:]
            third, fourth = cache[visible[k + 2], query_width:], cache[visible[k + 3], query_width:]
            for h in range(heads):
                begin = h * deep
                part, one, two, three, four = mean[begin:], first[begin:], second[begin:], third[begin:], fourth[begin:]
                a, b, c, d = weights[h, k], weights[h, k + 1], weights[h, k + 2], weights[h, k + 3]
                for i in range(deep):
                    part[i] += a * one[i] + b * two[i] + c * three[i] + d * four[i]
        for i in range(len(mean)):
            result[r, i] = mean[i]


@_jit
def adjust_rows(x: Array, heads: int, gains: Array, positions: Array, rotation: Array) -> None:
    """Normalize queries and keys with `gains`, if there are any, then rotate them, in place.

    As in `adjustment.adjust_heads`. Shapes: x (R, 2 · H·K …); gains (2, K) or (0, K); rotation as
    `adjustment.rotation_table` makes it; positions (B,), of R / B rows side by side, which a rotation needs.
    """
    if len(gains) == 0 and len(rotation) == 0:
        return
    width, half = gains.shape[1], rotation.shape[2]
    vector = np.empty(width, np.float64)
    for r in range(len(x)):
        position = positions[r * len(positions) // len(x)] if len(rotation) else 0
        for v in range(2 * heads):
            result = x[r, v * width : (v + 1) * width]
            if len(gains):
                total = 0.0
                for i in range(width):
                    total += np.float64(result[i]) * result[i]
                scale, gain = 1 / math.sqrt(total / width + EPS), gains[v // heads]
                for i in range(width):
                    vector[i] = result[i] * scale * gain[i]
            else:
                for i in range(width):
                    vector[i] = result[i]
            if len(rotation):
                cosines, sines = rotation[position, 0], rotation[position, 1]
                first, second = vector[:half], vector[half:]
                rotated_first, rotated_second = result[:half], result[half:]
                for i in range(half):
                    rotated_first[i] = first[i] * cosines[i] - second[i] * sines[i]
                for i in range(half):
                    rotated_second[i] = second[i] * cosines[i] + first[i] * sines[i]
                if width % 2:  # the last number has no other to be rotated with
                    result[width - 1] = vector[width - 1]
            else:
                for i in range(width):
                    result[i] = vector[i]


@_jit
def exponential(x: float) -> float:
    """exp(x), float64, for x ≤ 0, in operations that the compiler can vectorize.

    With n the integer nearest to x / ln 2, it is 2ⁿ · exp(x − n · ln 2): n goes into the exponent bits of a float, and
    a power series gives the second factor. The relative error is below 10⁻¹²; below −700 the result is exp(−700).
    """
    x = max(x, -700.0)
    n = np.int64(x * (1 / math.log(2)) - 0.5)
    f = x - n * math.log(2)
    series = 1 / 39916800 + f * (1 / 479001600)
    series = 1 / 362880 + f * (1 / 3628800 + f * series)
    series = 1 / 5040 + f * (1 / 40320 + f * series)
    series = 1 / 120 + f * (1 / 720 + f * series)
    series = 1 / 6 + f * (1 / 24 + f * series)
    series = 1.0 + f * (1.0 + f * (0.5 + f * series))
    return series * np.int64((n + 1023) << 52).view(np.float64)


@_jit
def layer_norm_rows(x: Array, gain: Array, bias: Array, eps: float, result: Array) -> None:
    """As in normalization.py."""
    rows, width = x.shape
    for r in range(rows):
        mean = 0.0
        for i in range(width):
            mean += x[r, i]
        mean /= width
        variance = 0.0
        for i in range(width):
            variance += (x[r, i] - mean) * (x[r, i] - mean)
        scale = 1 / math.sqrt(variance / width + eps)
        for i in range(width):
            result[r, i] = (x[r, i] - mean) * scale * gain[i] + bias[i]


@_jit
def activate(x: Array, activation: int) -> None:
    """Apply the activation with this index in `ACTIVATION_NAMES`, in place."""
    for r in range(len(x)):
        row = x[r]
        if activation == 0:
            bits = row.view(np.int32)  # integers are compared many at once
            for i in range(len(bits)):
                bits[i] = bits[i] if bits[i] > 0 else 0
        elif activation == 1:
            for i in range(len(row)):
                v = np.float64(row[i])
                row[i] = 0.5 * v * (1 + math.erf(v * math.sqrt(0.5)))
        else:
            for i in range(len(row)):
                v = np.float64(row[i])
                row[i] = v / (1 + math.exp(-v))


@_jit
def map_rows(x: Array, maps: FloatWeights | Int8Weights, result: Array) -> None:
    """The first linear map of `maps` alone: (R, in), into `result` (R, out)."""
    linear(x, maps, 0, result)


@_jit
def decode_and_project(
    scores: Array, projection: FloatWeights | Int8Weights, normalize: bool, banned_ids: Array, inputs: tuple[Any, ...]
) -> None:
    """`decode_tokens` of `inputs`, then the logits (R, V), or if `normalize` log-probabilities, into `scores`."""
    last, _, embedding = inputs[:3]
    x = np.empty((len(last), embedding.table.shape[1]), np.float32)
    decode_tokens(x, *inputs)
    linear(x, projection, 0, scores)
    if normalize:
        log_softmax_rows(scores, banned_ids)


@_jit
def log_softmax_rows(logits: Array, banned_ids: Array) -> None:
    """The log-softmax of each row of logits (R, V), in place; minus infinity for `banned_ids`.

    Exponentials are float32, since nothing that is computed depends on the result, and are added in float64.
    """
    for r in range(len(logits)):
        row = logits[r]
        for token in banned_ids:
            row[token] = -np.inf
        highest, total = maximum_float(row.view(np.int32)), 0.0
        for begin in range(0, len(row), 256):
            some: Array = row[begin : begin + 256]
            part: Any = np.float32(0)
            for i in range(len(some)):
                part += exponential_float32(some[i] - highest)
            total += part
        shift = np.float32(math.log(total))
        for i in range(len(row)):
            row[i] = (row[i] - highest) - shift


@_jit
def exponential_float32(x: Any) -> Any:
    """As `exponential`, in float32: the relative error is below 10⁻⁶, and below −87 the result is exp(−87)."""
    x = x if x > np.float32(-87) else np.float32(-87)
    n = np.int32(x * np.float32(1 / math.log(2)) - np.float32(0.5))
    f = (x - np.float32(n) * np.float32(0.693359375)) + np.float32(n) * np.float32(0.693359375 - math.log(2))
    series = np.float32(1 / 720) + f * np.float32(1 / 5040)
    series = np.float32(1 / 24) + f * (np.float32(1 / 120) + f * series)
    series = np.float32(1 / 2) + f * (np.float32(1 / 6) + f * series)
    series = np.float32(1) + f * (np.float32(1) + f * series)
    return series * np.int32((n + np.int32(127)) << np.int32(23)).view(np.float32)


@_jit
def maximum_float(bits: Array) -> Any:
    """The greatest of some float32, compared by their bits; of negative ones all but the sign are inverted."""
    highest = np.int32(-(2**31))
    for i in range(len(bits)):
        number = np.int32(bits[i] ^ ((bits[i] >> 31) & np.int32(0x7FFFFFFF)))
        highest = number if number > highest else highest
    return np.int32(highest ^ ((highest >> 31) & np.int32(0x7FFFFFFF))).view(np.float32)


@_jit
def top_continuations_rows(totals: Array, log_probabilities: Array, best: Array, parents: Array, tokens: Array) -> None:
    """The best continuations of `totals` (B, beam) by log-probabilities (B · beam, V), into three arrays (B, count).

    The best so far are kept in order; 64 tokens are skipped at once if none of them is better than the last of these.
    """
    sentences, beam = totals.shape
    vocabulary = log_probabilities.shape[1]
    best[:], parents[:], tokens[:] = -np.inf, 0, 0
    for b in range(sentences):
        top = best[b]
        last = len(top) - 1
        for k in range(beam):
            total, row = totals[b, k], log_probabilities[b * beam + k]
            for begin in range(0, vocabulary, 64):
                some = row[begin : begin + 64]
                better = np.int32(0)
                for i in range(len(some)):
                    better += np.int32(total + some[i] > top[last])
                if better == 0:
                    continue
                for i in range(len(some)):
                    candidate = total + some[i]
                    if candidate <= top[last]:
                        continue
                    rank = last
                    while rank > 0 and top[rank - 1] < candidate:
                        top[rank] = top[rank - 1]
                        parents[b, rank], tokens[b, rank] = parents[b, rank - 1], tokens[b, rank - 1]
                        rank -= 1
                    top[rank], parents[b, rank], tokens[b, rank] = candidate, k, begin + i
