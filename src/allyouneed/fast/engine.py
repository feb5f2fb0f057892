"""What translating needs of a model, `Engine`, and a step of it for a search, `EngineStep`."""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol

from ..config import ModelConfig
from ..decode.beam import Best
from ..decode.greedy import most_likely
from ..decode.step import AnyState
from ..decode.stepwise import TokenChooser
from ..lazy import Tensor, torch

Precision = Literal["float32", "int8"]
Compiled = bool | Literal["auto"]


class Engine(Protocol[AnyState]):
    """A trained model, prepared for translating with weights in `precision`.

    All engines give the logits of `Transformer`, but for rounding, and refuse the same inputs with the same errors.
    """

    @property
    def config(self) -> ModelConfig: ...

    @property
    def precision(self) -> Precision: ...

    @property
    def compiled(self) -> bool: ...

    def start(self, source: Tensor) -> AnyState:
        """Encode the source, (B, S). Returns the state before the first token, one hypothesis a sentence."""
        ...

    def step(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        """The last tokens (N,) and a state → logits of the next token, (N, V), and the state after the last tokens."""
        ...

    def log_probabilities(self, last: Tensor, state: AnyState, banned_ids: Tensor) -> tuple[Tensor, AnyState]:
        """As `step`, but log-probabilities in float32; those of `banned_ids`, (n,), are minus infinity."""
        ...

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """The `count` best continuations of each sentence's hypotheses; see `decode.beam.top_continuations`."""
        ...


class EngineStep(Generic[AnyState]):
    """An engine as the `Step` of a search that never writes `banned_ids`.

    Their probability is shared among all other tokens; with `renormalize` off it is lost.
    """

    def __init__(self, engine: Engine[AnyState], *, banned_ids: tuple[int, ...] = (), renormalize: bool = True) -> None:
        self._engine, self._renormalize = engine, renormalize
        self._banned_ids = torch.tensor(banned_ids, dtype=torch.int64)
        self.top_continuations = engine.top_continuations
        self.most_likely: TokenChooser = getattr(engine, "most_likely", most_likely)

    def __call__(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        banned_ids = self._banned_ids.to(last.device)
        if self._renormalize:
            return self._engine.log_probabilities(last, state, banned_ids)
        log_probabilities, state = self._engine.log_probabilities(last, state, banned_ids[:0])
        return log_probabilities.index_fill_(1, banned_ids, -torch.inf), state


def banned_log_softmax(logits: Tensor, banned_ids: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Log-probabilities in float32 of logits (N, V), computed in `dtype`; those of `banned_ids` are minus infinity."""
    return logits.index_fill(1, banned_ids, -torch.inf).log_softmax(-1, dtype=dtype or torch.float32).to(torch.float32)


AnyEngine = Engine[Any]
