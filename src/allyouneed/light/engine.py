"""Figure 1 in NumPy: what a search needs of a model, to translate before PyTorch is imported.

`nn/` is the definition. `note_light` compares these numbers with it. Everything between two linear maps is
computed in float64 and rounded once, as in the kernels, and products of int8 are exact, so int8 gives the logits of the
other engines to the bit (docs/measured/decoding-speed.md).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import ModelConfig
from ..errors import InputError

LightArray = NDArray[Any]
EXACT = 2**24  # float32 has all whole numbers up to it
NORM_EPS = 1e-5
QUERY_KEY_NORM_EPS = 1e-5

_error_function: Any = np.frompyfunc(math.erf, 1, 1)
_ACTIVATIONS: dict[str, Callable[[LightArray], LightArray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + _error_function(x * math.sqrt(0.5)).astype(np.float64)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


class LightLinear:
    """A linear map in float32, or with `greatest`, the level of the greatest input, of int8 weights and inputs."""

    def __init__(self, weight: LightArray, bias: LightArray | None, greatest: int | None) -> None:
        self.weight, self.bias, self.greatest = weight, bias, greatest
        if greatest is not None:
            self.scale = np.maximum(np.abs(weight).max(1), np.float32(1e-12)) / np.float32(127)
            integers = np.rint(weight / self.scale[:, None])
            self.total = self.scale * integers.sum(1, dtype=np.float32)
            largest = np.abs(integers).sum(1).max() * greatest
            self.weight = integers if largest <= EXACT else integers.astype(np.float64)

    def __call__(self, x: LightArray) -> LightArray:
        """Shapes: (…, in) → (…, out), float32."""
        rows = x.reshape(-1, x.shape[-1])
        if self.greatest is None:
            result = self._multiply(rows)
        else:  # operation by operation as in `Int8Linear`
            low, high = rows.min(1, keepdims=True, initial=0), rows.max(1, keepdims=True, initial=0)
            step = np.maximum((high - low) / np.float32(self.greatest), np.float32(1e-30))
            levels = np.floor((rows - low) * (np.float32(1) / step) + np.float32(0.5))
            sums = self._multiply(levels.astype(self.weight.dtype)).astype(np.float32)
            result = sums * step * self.scale + low * self.total
        if self.bias is not None:
            result += self.bias
        return result.reshape(*x.shape[:-1], -1)

    def _multiply(self, rows: LightArray) -> LightArray:
        """Rows (R, in) → (R, out). BLAS is three times as fast for few rows if the weights come first."""
        product: LightArray = self.weight @ np.ascontiguousarray(rows.T)
        return product.T


@dataclass(frozen=True, slots=True)
class LightState:
    """The state of N hypotheses of B sentences, those of a sentence side by side, after `length` tokens each.

    Shapes: memories, (B, S, H·K + H·Kv) of each block; mask (B, 1, 1, S), True at tokens; caches, (N, L, H·K + H·Kv).
    """

    memories: Sequence[LightArray]
    mask: LightArray
    caches: Sequence[LightArray]
    length: int = 0

    def reorder(self, hypotheses: LightArray) -> "LightState":
        """As in `decode.step.State`."""
        return replace(self, caches=[cache[hypotheses] for cache in self.caches])

    def keep(self, sentences: LightArray) -> "LightState":
        """As in `decode.step.State`."""
        sentences = np.asarray(sentences)
        width = len(self.caches[0]) // len(self.mask)
        rows = (sentences[:, None] * width + np.arange(width)).flatten()
        return LightState(
            [memory[sentences] for memory in self.memories],
            self.mask[sentences],
            [cache[rows] for cache in self.caches],
            self.length,
        )


class LightEngine:
    """A model by its `weights`, whose inner products are in float32 or, with `greatest`, in int8."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, LightArray], greatest: int | None) -> None:
        self.config, self._weights, self._greatest = config, weights, greatest
        self._source = weights["source_embedding.table"]
        self._target = weights.get("target_embedding.table", self._source)
        self._activation = _ACTIVATIONS[config.activation]
        k, v = config.d_k or config.d_model // config.heads, config.d_v or config.d_model // config.heads
        self._width, self._kv_width = config.heads * k, config.heads * (k + v)
        self._rotation = _sinusoids(config.max_length, k - k % 2) if config.is_rotary else None
        self._encoder = [self._block("encoder", n, "attention") for n in range(config.encoder_layers)]
        self._decoder = [self._block("decoder", n, "self_attention") for n in range(config.decoder_layers)]
        for n, block in enumerate(self._decoder):
            cross = f"decoder.layers.{n}.cross_attention"
            block["query"], block["cross_output"] = self._map(f"{cross}.query"), self._map(f"{cross}.output")
            block["keys_and_values"] = self._map(f"{cross}.key", f"{cross}.value")
        self._projection = LightLinear(
            weights.get("projection.table", self._target), weights.get("projection.bias"), greatest
        )

    def start(self, source: LightArray) -> LightState:
        """Encode the source, (B, S)."""
        real, length = source != self.config.pad_id, source.shape[1]
        if length > self.config.max_length:
            raise InputError(f"a sequence of {length} tokens is longer than max_length={self.config.max_length}")
        mask = real[:, None, None, :]
        x = self._embed("source", self._source, source, 0)
        for n, block in enumerate(self._encoder):
            name = f"encoder.layers.{n}"
            qkv = self._qkv(x, block, f"{name}.attention", 0)
            attended = self._attend(qkv[..., : self._width], qkv[..., self._width :], mask)
            x = self._residual(x, f"{name}.attention_residual", block["output"](attended))
            x = self._feed_forward(x, block, name)
        x = self._closing("encoder", x)
        memories = [block["keys_and_values"](x).astype(np.float64) for block in self._decoder]
        return LightState(memories, mask, [np.empty((len(x), 0, self._kv_width)) for _ in self._decoder])

    def step(self, last: LightArray, state: LightState) -> tuple[LightArray, LightState]:
        """The last tokens (N,) and a state → logits of the next token, (N, V), and the state after the last tokens."""
        if state.length == self.config.max_length:
            raise InputError(f"a sequence of {state.length + 1} tokens is longer than max_length={state.length}")
        sentences, caches = len(state.mask), []
        x = self._embed("target", self._target, last[:, None], state.length)
        for n, (block, cache, memory) in enumerate(zip(self._decoder, state.caches, state.memories, strict=True)):
            name = f"decoder.layers.{n}"
            qkv = self._qkv(x, block, f"{name}.self_attention", state.length)
            caches.append(np.concatenate((cache, qkv[..., self._width :]), 1))
            attended = self._attend(qkv[..., : self._width], caches[-1], None)
            x = self._residual(x, f"{name}.self_attention_residual", block["output"](attended))
            query = block["query"](self._pre_norm(x, f"{name}.cross_attention_residual"))
            grouped = query.reshape(sentences, -1, self._width)  # (N, 1, H·K) → (B, N/B, H·K)
            attended = self._attend(grouped, memory, state.mask).reshape(len(x), 1, -1)
            x = self._residual(x, f"{name}.cross_attention_residual", block["cross_output"](attended))
            x = self._feed_forward(x, block, name)
        return self._projection(self._closing("decoder", x)[:, 0]), replace(
            state, caches=caches, length=state.length + 1
        )

    def _block(self, stack: str, n: int, attention: str) -> dict[str, LightLinear]:
        name = f"{stack}.layers.{n}"
        return {
            "qkv": self._map(*(f"{name}.{attention}.{part}" for part in ("query", "key", "value"))),
            "output": self._map(f"{name}.{attention}.output"),
            "inner": self._map(f"{name}.feed_forward.inner"),
            "outer": self._map(f"{name}.feed_forward.outer"),
        }

    def _map(self, *names: str) -> LightLinear:
        """One linear map in place of several of the same vector: their outputs side by side."""
        weight, bias = (
            np.concatenate([self._weights[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias")
        )
        return LightLinear(weight, bias, self._greatest)

    def _embed(self, side: str, table: LightArray, ids: LightArray, start: int) -> LightArray:
        """§3.4 and §3.5. Shapes: (B, L), at positions from `start` on → (B, L, D)."""
        if not ((ids >= 0) & (ids < len(table))).all():
            raise InputError(f"ids must be from 0 to {len(table) - 1}")
        x: LightArray = np.float64(np.float32(math.sqrt(self.config.d_model))) * table[ids]
        if self.config.positions != "rotary":
            learned, end = self._weights.get(f"{side}_position.encoding"), start + ids.shape[1]
            x += (_sinusoids(end, self.config.d_model) if learned is None else learned)[start:end]
        return x.astype(np.float32)

    def _qkv(self, x: LightArray, block: dict[str, LightLinear], name: str, start: int) -> LightArray:
        """Queries, keys and values side by side; queries and keys normalized and rotated, if the model does so."""
        qkv = block["qkv"](self._pre_norm(x, f"{name}_residual")).astype(np.float64)
        gain = self._weights.get(f"{name}.query_gain")
        if gain is None and self._rotation is None:
            return qkv
        pairs = qkv[..., : 2 * self._width].reshape(*x.shape[:2], 2, self.config.heads, -1)  # a copy, (B, L, 2, H, K)
        if gain is not None:
            gains = np.stack((gain, self._weights[f"{name}.key_gain"]))[:, None]
            pairs = pairs / np.sqrt((pairs * pairs).mean(-1, keepdims=True) + QUERY_KEY_NORM_EPS) * gains
        if self._rotation is not None:
            table = self._rotation[start : start + x.shape[1], None, None]  # (L, 1, 1, K)
            half = table.shape[-1] // 2
            first, second = pairs[..., :half].copy(), pairs[..., half : 2 * half].copy()
            pairs[..., :half] = first * table[..., 1::2] - second * table[..., 0::2]
            pairs[..., half : 2 * half] = second * table[..., 1::2] + first * table[..., 0::2]
        qkv[..., : 2 * self._width] = pairs.reshape(*x.shape[:2], -1).astype(np.float32)
        return qkv

    def _attend(self, query: LightArray, keys_and_values: LightArray, mask: LightArray | None) -> LightArray:
        """Equation 1. Shapes: (B, T, H·K), (B, L, H·K + H·Kv), (B, 1, 1, L) → (B, T, H·Kv), float32."""
        heads = self.config.heads
        q, k, v = (
            part.reshape(*part.shape[:2], heads, -1).transpose(0, 2, 1, 3).astype(np.float64)  # (B, H, …, K)
            for part in (query, keys_and_values[..., : self._width], keys_and_values[..., self._width :])
        )
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended: LightArray = (weights / weights.sum(-1, keepdims=True)) @ v
        return attended.transpose(0, 2, 1, 3).reshape(*query.shape[:2], -1).astype(np.float32)

    def _feed_forward(self, x: LightArray, block: dict[str, LightLinear], name: str) -> LightArray:
        hidden = block["inner"](self._pre_norm(x, f"{name}.feed_forward_residual"))
        hidden = self._activation(hidden.astype(np.float64)).astype(np.float32)
        return self._residual(x, f"{name}.feed_forward_residual", block["outer"](hidden))

    def _pre_norm(self, x: LightArray, name: str) -> LightArray:
        return self._norm(x, f"{name}.norm") if self.config.norm == "pre" else x

    def _residual(self, x: LightArray, name: str, more: LightArray) -> LightArray:
        x = x + more
        return x if self.config.norm == "pre" else self._norm(x, f"{name}.norm")

    def _closing(self, stack: str, x: LightArray) -> LightArray:
        return self._norm(x, f"{stack}.norm") if self.config.norm == "pre" else x

    def _norm(self, x: LightArray, name: str) -> LightArray:
        centred = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
        scaled = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + NORM_EPS)
        normed: LightArray = scaled * self._weights[f"{name}.gain"] + self._weights[f"{name}.bias"]
        return normed.astype(np.float32)


def _sinusoids(length: int, width: int) -> LightArray:
    """As in nn/position.py."""
    frequency = np.exp(np.arange(0, width, 2) * (-math.log(10_000) / width))
    angle = np.outer(np.arange(length), frequency)
    return np.stack((np.sin(angle), np.cos(angle)), -1).reshape(length, -1).astype(np.float32)
