"""Several models as one engine: the probability of the next token is the mean of those that the models give."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..decode.beam import Best
from ..decode.likelihood import mean_probability
from .engine import AnyEngine


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """The state of each member, in their order; any state that an engine has."""

    members: tuple[Any, ...]

    def reorder(self, hypotheses: Tensor) -> "EnsembleState":
        """As in `State`."""
        return EnsembleState(tuple(state.reorder(hypotheses) for state in self.members))

    def keep(self, sentences: Tensor) -> "EnsembleState":
        """As in `State`."""
        return EnsembleState(tuple(state.keep(sentences) for state in self.members))


class EnsembleEngine:
    """An `Engine` of several engines in one precision, whose models have the same vocabularies and any sizes.

    `config` is that of the first model, with the smallest `max_length` of all.
    """

    def __init__(self, members: Sequence[AnyEngine]) -> None:
        self._members = tuple(members)
        self.precision = members[0].precision
        self.config = replace(members[0].config, max_length=min(engine.config.max_length for engine in members))

    @property
    def compiled(self) -> bool:
        """As in `Engine`."""
        return all(engine.compiled for engine in self._members)

    def start(self, source: Tensor) -> EnsembleState:
        """As in `Engine`."""
        return EnsembleState(tuple(engine.start(source) for engine in self._members))

    def step(self, last: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """As in `Engine`; the logits are log-probabilities."""
        return self.log_probabilities(last, state, torch.empty(0, dtype=torch.int64, device=last.device))

    def log_probabilities(self, last: Tensor, state: EnsembleState, banned_ids: Tensor) -> tuple[Tensor, EnsembleState]:
        """As in `Engine`."""
        results = [
            engine.log_probabilities(last, inner, banned_ids)
            for engine, inner in zip(self._members, state.members, strict=True)
        ]
        rows, states = zip(*results, strict=True)
        return mean_probability(rows), EnsembleState(states)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return self._members[0].top_continuations(totals, log_probabilities, count)
