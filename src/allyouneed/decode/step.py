"""What a search asks of a model: one function, and a state that goes in and comes out."""

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
    """The last ids (N,) and a state → log-probabilities of the next, (N, V), and the next state.

    A step may have a method `top_continuations`, which beam searches then call in place of that of beam.py.
    """

    def __call__(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]: ...


class SearchLimits(TypedDict):
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
    """What `make_step` needs, such as a `Transformer`."""

    def step(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        """The last ids (N,) and a state → logits of the next, (N, V), and the next state."""
        ...


def make_step(model: Model[AnyState], *, banned_ids: tuple[int, ...] = ()) -> Step[AnyState]:
    """A model as a `Step` that gives `banned_ids` (padding, the start token) a probability of 0."""
    banned = torch.tensor(banned_ids, dtype=torch.int64)

    def step(last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        logits, state = model.step(last, state)
        logits.index_fill_(1, banned.to(logits.device), -torch.inf)
        return logits.log_softmax(-1, dtype=torch.float32), state

    return step
