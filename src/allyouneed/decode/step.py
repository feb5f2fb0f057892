"""What a search asks of a model: one function, and a state that goes in and comes out."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self, TypedDict, TypeVar

import torch
from torch import Tensor


class State(Protocol):
    """The past of N hypotheses of B sentences, those of a sentence side by side."""

    def reorder(self, hypotheses: Tensor) -> Self:
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        ...

    def keep(self, sentences: Tensor) -> Self:
        """The state of these sentences alone, with all their hypotheses."""
        ...


AnyState = TypeVar("AnyState", bound=State)


class Step(Protocol[AnyState]):
    """The last ids (N,) and a state → log-probabilities of the next, (N, V), and the next state."""

    def __call__(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]: ...


class Bounds(TypedDict):
    """Where the sentences of a search begin and end: signs, and the most ids of each, the end sign included, (B,)."""

    sos_id: int
    eos_id: int
    max_lengths: Tensor


class Hypothesis(NamedTuple):
    """A sentence that a search found: its ids, the end sign left out, and its log-probability in nats."""

    ids: list[int]
    log_probability: float
    score: float  # what the search ranks by
    finished: bool = True  # False: it was cut off at its bound, before its end sign


class Model(Protocol[AnyState]):
    """What `step_of` needs: a `Transformer` or a `FastTransformer`."""

    def step(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        """The last ids (N,) and a state → logits of the next, (N, V), and the next state."""
        ...


def log_softmax_without(logits: Tensor, never: Tensor) -> Tensor:
    """Log-probabilities in float32, none for the words in `never`. Shapes: (N, V), any number → (N, V)."""
    return logits.index_fill_(1, never, -torch.inf).log_softmax(-1, dtype=torch.float32)


def step_of(
    model: Model[AnyState],
    *,
    never: tuple[int, ...] = (),
    log_softmax: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Step[AnyState]:
    """A model as a `Step` that gives the ids in `never` (padding, the start sign) no chance.

    A model may know a quicker `log_softmax`.
    """
    normalize = log_softmax or log_softmax_without
    unspoken = torch.tensor(never, dtype=torch.int64)

    def step(last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        logits, state = model.step(last, state)
        return normalize(logits, unspoken.to(logits.device)), state

    return step
