"""An engine that hands each search to another engine, which may be replaced between two searches."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..decode.beam import Best
from .engine import AnyEngine


@dataclass(frozen=True, slots=True)
class PinnedState:
    """The state of a search together with the engine that began the search, which computes it to its end."""

    engine: AnyEngine
    inner: Any

    def reorder(self, hypotheses: Tensor) -> "PinnedState":
        """As in `State`."""
        return replace(self, inner=self.inner.reorder(hypotheses))

    def keep(self, sentences: Tensor) -> "PinnedState":
        """As in `State`."""
        return replace(self, inner=self.inner.keep(sentences))


class PinningEngine(ABC):
    """An `Engine` whose searches are computed by what `begin_search` returns, each by one engine to its end."""

    _engine: AnyEngine

    @property
    def compiled(self) -> bool:
        """Whether the compiled engine computes the searches that begin now."""
        return self._engine.compiled

    @abstractmethod
    def begin_search(self) -> AnyEngine:
        """As in `Engine`."""

    def start(self, source: Tensor) -> PinnedState:
        """As in `Engine`."""
        engine = self.begin_search()
        return PinnedState(engine, engine.start(source))

    def step(self, last: Tensor, state: PinnedState) -> tuple[Tensor, PinnedState]:
        """As in `Engine`."""
        logits, inner = state.engine.step(last, state.inner)
        return logits, PinnedState(state.engine, inner)

    def log_probabilities(self, last: Tensor, state: PinnedState, banned_ids: Tensor) -> tuple[Tensor, PinnedState]:
        """As in `Engine`."""
        log_probabilities, inner = state.engine.log_probabilities(last, state.inner, banned_ids)
        return log_probabilities, PinnedState(state.engine, inner)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return self._engine.top_continuations(totals, log_probabilities, count)
