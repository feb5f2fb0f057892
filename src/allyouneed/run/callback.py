"""What a run tells others while it goes on, and what it asks of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..bundle import Bundle
from ..corpus.readers import Pair
from ..train.loop import Update


@dataclass(frozen=True, slots=True)
class Sample:
    """What a model wrote for a validation pair, and how good that is, from 0 to 100."""

    source: str
    reference: str
    output: str
    score: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a judge says of a model: scores by name, each better when higher, and the sentences they come from."""

    scores: Mapping[str, float]
    samples: Sequence[Sample] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)  # how each score was computed, as sacrebleu says it


# Scores a model on some validation pairs, in whatever it likes.
Evaluator = Callable[[Bundle, Sequence[Pair]], Evaluation]


@dataclass(frozen=True, slots=True)
class Validation:
    """Where a run stands after update `step`.

    `loss` is the training loss, averaged since the last pause (None of a mean of pauses); `valid_loss`
    is without label smoothing, so exp of it is the perplexity; both in nats a token. `accuracy` is the
    share of the validation's tokens that would be said right after the reference's words so far, in
    percent. None without validation data. `seconds` is the time spent training, over all its parts.
    `skipped` counts the updates left out as not finite. `averaged` is of how many pauses the model is
    the mean.
    """

    step: int
    loss: float | None
    learning_rate: float
    valid_loss: float | None
    accuracy: float | None
    scores: Mapping[str, float]
    seconds: float
    skipped: int = 0
    averaged: int = 1
    samples: Sequence[Sample] = ()


class TrainingCallback(Protocol):
    """Who is told how a run goes."""

    def on_message(self, topic: str, text: str) -> None:
        """A line about the data, the model, or something that happened."""

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        """The pairs are being prepared: `done` of `total` of them (None: nobody knows) by what is under way."""

    def on_train_begin(self, step: int, steps: int) -> None:
        """Training begins or goes on after update `step`; it is to have `steps`."""

    def on_update(self, update: Update) -> None:
        """An update is done."""

    def on_validation(self, pause: Validation) -> None:
        """A pause is over: validated, and saved."""


class SilentCallback:
    """A `Watch` that keeps it to itself."""

    def on_message(self, topic: str, text: str) -> None: ...
    def on_prepare(self, what: str, done: int, total: int | None) -> None: ...
    def on_train_begin(self, step: int, steps: int) -> None: ...
    def on_update(self, update: Update) -> None: ...
    def on_validation(self, pause: Validation) -> None: ...
