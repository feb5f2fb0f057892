"""A model that translates in C, with the interface that a search needs (`decode/step.py`)."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from ctypes import CDLL, Array, byref, c_double, c_int, c_int32, c_void_p, create_string_buffer
from itertools import islice, starmap
from struct import Struct
from typing import Any, Literal, NamedTuple

from ..config import ModelConfig
from ..decode.step import Continuation, Restriction
from ..errors import ConfigError, InputError
from ..machine.device import available_cores
from .library import POSITION_FIELDS, Config, address_of, chosen_instruction_set, load_library

Precision = Literal["float32", "int8"]

CONTINUATION = Struct("dii")  # as declared in engine.h
ACTIVATIONS = ("relu", "gelu", "silu")
LARGEST_INT8_INPUT = 2**31 // 128**2 - 1  # numbers in an input, so that the sum of products fits into 32 bits
ERRORS = {
    1: "not enough memory",
    2: "an id is outside the vocabulary",
    3: "no such hypothesis",
    4: "longer than the model's max_length",
    5: "a weight is not a finite number",
}


class Weight(NamedTuple):
    """A weight of the model: its name in `nn/`, and its shape."""

    name: str
    shape: tuple[int, ...]


def list_weights(config: ModelConfig) -> list[Weight | None]:
    """List the weights in the order in which model.c expects them, with None for a weight that this model lacks."""
    d_model = config.d_model
    d_k = config.effective_d_k
    keys, values = config.heads * d_k, config.heads * config.effective_d_v
    learned = config.positions == "learned"

    def linear(name: str, size_in: int, size_out: int) -> Iterator[Weight]:
        yield Weight(f"{name}.weight", (size_out, size_in))
        yield Weight(f"{name}.bias", (size_out,))

    def norm(name: str, present: bool = True) -> Iterator[Weight | None]:
        yield Weight(f"{name}.gain", (d_model,)) if present else None
        yield Weight(f"{name}.bias", (d_model,)) if present else None

    def attention(name: str, is_self: bool) -> Iterator[Weight | None]:
        yield from linear(f"{name}.query", d_model, keys)
        yield from linear(f"{name}.key", d_model, keys)
        yield from linear(f"{name}.value", d_model, values)
        yield from linear(f"{name}.output", values, d_model)
        if is_self:
            yield Weight(f"{name}.query_gain", (d_k,)) if config.query_key_norm else None
            yield Weight(f"{name}.key_gain", (d_k,)) if config.query_key_norm else None
        yield from norm(f"{name}_residual.norm")

    def block(name: str, attentions: Sequence[str]) -> Iterator[Weight | None]:
        for part in attentions:
            yield from attention(f"{name}.{part}", is_self=part != "cross_attention")
        yield from linear(f"{name}.feed_forward.inner", d_model, config.d_ff)
        yield from linear(f"{name}.feed_forward.outer", config.d_ff, d_model)
        yield from norm(f"{name}.feed_forward_residual.norm")

    def side(
        name: str, vocab_size: int, layers: int, attentions: Sequence[str], table: bool
    ) -> Iterator[Weight | None]:
        stack = "encoder" if name == "source" else "decoder"
        yield Weight(f"{name}_embedding.table", (vocab_size, d_model)) if table else None
        yield Weight(f"{name}_position.encoding", (config.max_length, d_model)) if learned else None
        for layer in range(layers):
            yield from block(f"{stack}.layers.{layer}", attentions)
        yield from norm(f"{stack}.norm", config.norm == "pre")

    target_vocab_size = config.effective_target_vocab_size
    own_target_table = config.tied_embeddings != "all"
    own_projection = config.tied_embeddings == "none"
    return [
        *side("source", config.vocab_size, config.encoder_layers, ["attention"], True),
        *side(
            "target", target_vocab_size, config.decoder_layers, ["self_attention", "cross_attention"], own_target_table
        ),
        Weight("projection.table", (target_vocab_size, d_model)) if own_projection else None,
        Weight("projection.bias", (target_vocab_size,)) if config.projection_bias else None,
    ]


def fits_int8(config: ModelConfig) -> bool:
    """Return True if sums of int8 products fit into 32 bits in all linear maps of a model."""
    return max(config.d_model, config.d_ff, config.heads * config.effective_d_v) <= LARGEST_INT8_INPUT


class NativeEngine:
    """A model in C, as an `Engine`. Refuses weights whose names or shapes do not fit the config."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, memoryview[Any]], precision: Precision) -> None:
        library = load_library()
        assert library is not None, "the caller asks `load_library` first"
        self.config = config
        self.precision = precision
        self._library = library
        listed = list_weights(config)
        require_weights(listed, weights)
        addresses = (c_void_p * len(listed))(*(address_of(weights[one.name]) if one else None for one in listed))
        error = c_int()
        model = library.model_new(
            byref(as_structure(config, precision)), addresses, None, chosen_instruction_set(), byref(error)
        )
        if not model:
            raise MemoryError(ERRORS[1]) if error.value == 1 else ConfigError(ERRORS[error.value])
        self._model = model
        weakref.finalize(self, library.model_free, model)

    @property
    def workers(self) -> int:
        """The number of searches to run at once; see `Engine.workers`. Each search keeps one core busy."""
        return available_cores()

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> NativeStep:
        """Encode sources and start a search. Refuses ids outside the vocabulary, and sources that are too long."""
        return NativeStep(self, self._library, self._model, sources, banned_ids, renormalize)


class NativeStep:
    """One search of a `NativeEngine`; an `EngineStep`."""

    def __init__(
        self,
        engine: NativeEngine,
        library: CDLL,
        model: int,
        sources: Sequence[Sequence[int]],
        banned_ids: Sequence[int],
        renormalize: bool,
    ) -> None:
        self._engine = engine  # must outlive the search
        self._library = library
        self._rows = len(sources)
        self._vocab_size = engine.config.effective_target_vocab_size
        ids = [token for source in sources for token in source]
        error = c_int()
        search = library.search_new(
            model, _ids(ids), _ids([len(source) for source in sources]), len(sources),
            _ids(banned_ids), len(banned_ids), renormalize, byref(error),
        )  # fmt: skip
        _require_ok(error.value)
        self._search = search
        weakref.finalize(self, library.search_free, search)

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        """Extend hypotheses, and compute the probabilities of their next tokens; see `Step.__call__`."""
        rows = len(tokens)
        _require_ok(self._library.search_step(self._search, _ids(hypotheses), _ids(tokens), rows))
        self._rows = rows

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        """Restrict the next token of one hypothesis; see `Step.restrict`."""
        banned, forced, penalized, penalty = restriction
        _require_ok(
            self._library.search_restrict(
                self._search, hypothesis, _ids([*penalized]), len(penalized), penalty,
                _ids([*banned]), len(banned), -1 if forced is None else forced,
            )
        )  # fmt: skip

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Find the `count` most likely continuations of each remaining sentence; see `Step.best`."""
        rows = self._rows
        count = min(count, rows * self._vocab_size)
        found = (c_int32 * rows)()
        best = create_string_buffer(CONTINUATION.size * rows * count)
        sentences = self._library.search_best(self._search, (c_double * rows)(*totals), count, found, best)
        continuations = starmap(Continuation, CONTINUATION.iter_unpack(best))
        return [list(islice(continuations, size)) for size in found[:sentences]]

    def log_probability(self, hypothesis: int, token: int) -> float:
        """Return the log-probability of a next token; see `Step.log_probability`."""
        stride = c_int()
        first = self._library.search_log_probabilities(self._search, byref(stride))
        return float(first[hypothesis * stride.value + token])

    def log_probabilities(self) -> Any:
        """Return the log-probabilities of the next token, (N, V), in an array that the next step overwrites."""
        import numpy as np

        stride = c_int()
        first = self._library.search_log_probabilities(self._search, byref(stride))
        return np.ctypeslib.as_array(first, (self._rows, stride.value))[:, : self._vocab_size]


def require_weights(listed: Sequence[Weight | None], weights: Mapping[str, memoryview[Any]]) -> None:
    """Refuse weights unless they are exactly the weights in the list, in float32."""
    expected = {weight.name: weight.shape for weight in listed if weight}
    if expected.keys() != weights.keys():
        different = sorted(expected.keys() ^ weights.keys())
        raise ConfigError(f"names differ from the model's, {different[0]} for one")
    for name, shape in expected.items():
        if weights[name].shape != shape or weights[name].format != "f":
            raise ConfigError(
                f"{name} must have shape {shape} in float32; got {weights[name].shape}, format {weights[name].format}"
            )


def as_structure(config: ModelConfig, precision: Precision) -> Config:
    """Write a config in the form that C expects.

    Refuses int8 for layers with so many inputs that a sum of their products would overflow 32 bits.
    """
    if precision == "int8" and not fits_int8(config):
        raise ConfigError(f"int8 is for inputs of at most {LARGEST_INT8_INPUT} numbers; use float32")
    return Config(
        vocab_size=config.vocab_size,
        target_vocab_size=config.effective_target_vocab_size,
        d_model=config.d_model,
        d_ff=config.d_ff,
        heads=config.heads,
        d_k=config.effective_d_k,
        d_v=config.effective_d_v,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        max_length=config.max_length,
        activation=ACTIVATIONS.index(config.activation),
        norm_first=config.norm == "pre",
        **dict.fromkeys(POSITION_FIELDS[config.positions], 1),
        query_key_norm=config.query_key_norm,
        int8=precision == "int8",
    )


def _ids(values: Sequence[int]) -> Array[c_int32]:
    return (c_int32 * len(values))(*values)


def _require_ok(error: int) -> None:
    if error == 1:
        raise MemoryError(ERRORS[1])
    if error:
        raise InputError(ERRORS[error])
