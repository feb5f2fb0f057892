"""Several models as one engine: the probability of a token is the mean over the models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .array_step import ArrayStep, Rows
from .engine import Engine, EngineStep


class EnsembleEngine:
    """An `Engine` made of several engines. Their models share the vocabularies and may differ in size."""

    def __init__(self, members: Sequence[Engine]) -> None:
        self._members = tuple(members)
        self.precision = members[0].precision
        self.config = replace(members[0].config, max_length=min(engine.config.max_length for engine in members))
        self.workers = min(engine.workers for engine in members)

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> EnsembleStep:
        """Start a search in every engine; see `Engine.start`."""
        steps = [engine.start(sources, banned_ids=banned_ids, renormalize=renormalize) for engine in self._members]
        return EnsembleStep(steps, len(sources))


class EnsembleStep(ArrayStep):
    """One search of an `EnsembleEngine`."""

    def __init__(self, members: Sequence[EngineStep], sentences: int) -> None:
        super().__init__(sentences)
        self._members = members

    def compute(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> Rows:
        """Return the mean over the models; see `ArrayStep.compute`."""
        for step in self._members:
            step(hypotheses, tokens)
        rows = np.array([np.asarray(step.log_probabilities()) for step in self._members], np.float64)
        mean: Rows = (np.logaddexp.reduce(rows, 0) - math.log(len(rows))).astype(np.float32)
        return mean
