"""What a search needs of a model: one function, and a state that goes in and comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeVar

from ..lazy import Tensor, torch


class State(Protocol):
    """The state of N hypotheses of B sentences, those of a sentence side by side."""

    def reorder(self, hypotheses: Tensor) -> Self:
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        ...

    def keep(self, sentences: Tensor) -> Self:
        """The state of these sentences alone, with all their hypotheses."""
        ...


AnyState = TypeVar("AnyState", bound=State)


class Step(Protocol[AnyState]):
    """The last ids (N,) and a state → log-probabilities of the next, (N, V), and the next state.

    A step may have methods `top_continuations` and `most_likely`, which searches then call in place of those of beam.py
    and greedy.py.
    """

    def __call__(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]: ...


def never_cancelled(_: int) -> bool:
    """The `is_cancelled` of a search that is not to be cancelled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Where the B sentences of a search begin and end.

    They begin with the token `sos_id` and end with `eos_id`, or with `max_lengths` (B,) tokens, the end token counted.
    `is_cancelled` is called with the index of a sentence after each step; one for which it is true leaves the batch
    before the next step, and has no hypotheses in the end. Once true for a sentence it must stay true.
    """

    sos_id: int
    eos_id: int
    max_lengths: Tensor
    is_cancelled: Callable[[int], bool] = never_cancelled

    @property
    def sentences(self) -> int:
        """How many there are, B."""
        return len(self.max_lengths)

    @property
    def longest(self) -> int:
        """The most tokens that any sentence may have."""
        return int(self.max_lengths.max())

    def ids(self, values: Sequence[int]) -> Tensor:
        """Ids or indices as a tensor, (n,), for the step and the state of the search."""
        return self.max_lengths.new_tensor(values)

    @property
    def device(self) -> torch.device:
        """Where the tensors of the search are."""
        return self.max_lengths.device


SURE = math.log(0.8)  # mean log-probability of a token from which on an output is an answer; nats


class Hypothesis(NamedTuple):
    """A sentence that a search found: its ids without the end token, and its log-probability in nats."""

    ids: list[int]
    log_probability: float
    score: float  # hypotheses are ranked by it
    finished: bool = True  # False: it was cut off at its limit, before its end token

    @property
    def tokens(self) -> int:
        """How many it has, the end token included."""
        return len(self.ids) + self.finished

    @property
    def confidence(self) -> float:
        """The mean log-probability of a token."""
        return self.log_probability / max(self.tokens, 1)

    @property
    def is_sure(self) -> bool:
        """Whether the model ended it by itself, with a confidence of at least `SURE`."""
        return self.finished and self.confidence >= SURE


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
