"""The searches of `decode/` over a `LightEngine`: arrays in place of tensors."""

import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

import numpy as np
from safetensors.numpy import load_file

from ..config import DecodeConfig, ModelConfig
from ..decode.beam import Best
from ..decode.search import search
from ..decode.step import Hypothesis, SearchLimits
from ..machine_notes import read_note
from .engine import LightArray, LightEngine, LightState

LIGHT_SECONDS = 1.5  # for so long NumPy searches: importing PyTorch takes about as long
LIGHT_BATCH = 8  # requests; of more, PyTorch makes up for its import


class LightStep:
    """A `LightEngine` as the `Step` of a search that never writes `banned_ids`."""

    def __init__(self, engine: LightEngine, banned_ids: Sequence[int]) -> None:
        self._engine, self._banned_ids = engine, list(banned_ids)

    def __call__(self, last: LightArray, state: LightState) -> tuple[LightArray, LightState]:
        logits, state = self._engine.step(last, state)
        logits[:, self._banned_ids] = -np.inf
        shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
        return (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))).astype(np.float32), state

    @staticmethod
    def most_likely(log_probabilities: LightArray, _: Sequence[int]) -> tuple[LightArray, LightArray]:
        """As in `decode/greedy.py`."""
        return log_probabilities.max(-1), log_probabilities.argmax(-1)

    @staticmethod
    def top_continuations(totals: list[list[float]], log_probabilities: LightArray, count: int) -> Best:
        """As in `decode/beam.py`."""
        before = np.array(totals, np.float32)
        vocabulary = log_probabilities.shape[1]
        continued = (before[:, :, None] + log_probabilities.reshape(*before.shape, -1)).reshape(len(before), -1)
        some = np.argpartition(-continued, min(count, continued.shape[1]) - 1)[:, :count]
        values = np.take_along_axis(continued, some, 1)
        order = np.lexsort((some, -values))
        best, where = np.take_along_axis(values, order, 1), np.take_along_axis(some, order, 1)
        return best.tolist(), (where // vocabulary).tolist(), (where % vocabulary).tolist()


class LightLimits(SearchLimits):
    """The limits of a search whose ids are arrays."""

    def ids(self, values: Sequence[int]) -> Any:
        """As in `SearchLimits`."""
        return np.array(values, np.int64)


def pad_sources(rows: Sequence[Sequence[int]], pad_id: int) -> LightArray:
    """Rows of ids as one array, (B, L), padded with `pad_id`."""
    longest = max(map(len, rows))
    return np.array([[*row, *[pad_id] * (longest - len(row))] for row in rows], np.int64)


class LightModel:
    """A model in NumPy, for a process that has not imported PyTorch, as long as its searches are short."""

    def __init__(self, engine: LightEngine, precision: Literal["float32", "int8"]) -> None:
        self.engine, self.precision = engine, precision
        self._seconds = 0.0

    def can_search(self, config: DecodeConfig, requests: int) -> bool:
        """Whether it searches for so many requests, without rules and constraints, by these settings."""
        may_go_on = "torch" not in sys.modules and self._seconds < LIGHT_SECONDS and requests <= LIGHT_BATCH
        return may_go_on and _is_plain(config) and config.renormalize_logits

    def search(
        self, sources: Sequence[list[int]], config: DecodeConfig, limits: LightLimits, banned_ids: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """As `decode.search.search`."""
        began, step = perf_counter(), LightStep(self.engine, banned_ids)
        state = self.engine.start(pad_sources(sources, self.engine.config.pad_id))
        hypotheses: list[list[Hypothesis]] = search(cast(Any, step), cast(Any, state), config, limits)
        self._seconds += perf_counter() - began
        return hypotheses


def read_light(folder: Path, config: ModelConfig, weights_digest: str, precision: str) -> LightModel | None:
    """The model of a bundle in NumPy, if its numbers were compared here with those of PyTorch; else None."""
    noted = read_note("compared", config, weights_digest)
    known: Literal["float32", "int8"] = "int8" if noted.get("greatest") else "float32"
    if "greatest" not in noted or precision not in ("auto", known):
        return None
    return LightModel(LightEngine(config, load_file(folder / "weights.safetensors"), noted["greatest"]), known)


def _is_plain(config: DecodeConfig) -> bool:
    """Whether it asks for a greedy or beam search without rules."""
    lengths = config.min_length or config.min_ratio or config.forced_eos
    has_rules = lengths or config.repetition_penalty != 1 or config.no_repeat_ngram_size
    return not (config.sample or config.beam_groups > 1 or has_rules)
