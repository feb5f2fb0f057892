"""A `Step` that keeps its log-probabilities in a NumPy array, for ensembles and exported models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..decode import Continuation, Restriction

Rows = np.ndarray[Any, np.dtype[np.float32]]


class ArrayStep:
    """Base class for searches that compute all log-probabilities, (N, V), at every step.

    Subclasses override `compute`.
    """

    def __init__(self, sentences: int) -> None:
        self._sentences = list(range(sentences))  # the sentence of each hypothesis
        self._rows: Rows = np.empty((0, 0), np.float32)

    def compute(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> Rows:
        """Return the log-probabilities (N, V) of the next token; the arguments are as in `Step.__call__`."""
        raise NotImplementedError

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        self._rows = self.compute(hypotheses, tokens)
        self._sentences = [self._sentences[n] for n in hypotheses]

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        row = self._rows[hypothesis]
        row[list(restriction.penalized)] *= restriction.penalty
        after = row.copy()
        if restriction.forced is not None:
            after[:] = -math.inf
            after[restriction.forced] = row[restriction.forced]
        after[list(restriction.banned)] = -math.inf
        if np.isfinite(after).any():
            row[:] = after

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        found = []
        for _, group in groupby(range(len(totals)), key=self._sentences.__getitem__):
            numbers = [n for n in group if totals[n] > -math.inf]
            before = np.array([totals[n] for n in numbers]).reshape(-1, 1)
            continued = (self._rows[numbers] + before).ravel()  # float64
            least = np.partition(continued, -count)[-count] if count < len(continued) else -math.inf
            places = np.flatnonzero((continued >= least) & (continued > -math.inf))
            order = places[np.lexsort((places, -continued[places]))][:count]
            pairs = [divmod(int(place), self._rows.shape[1]) for place in order]
            found.append(
                [
                    Continuation(total, numbers[row], token)
                    for total, (row, token) in zip(continued[order].tolist(), pairs, strict=True)
                ]
            )
        return found

    def log_probability(self, hypothesis: int, token: int) -> float:
        return float(self._rows[hypothesis, token])

    def log_probabilities(self) -> Rows:
        """Return the log-probabilities of the next token, (N, V)."""
        return self._rows.copy()
