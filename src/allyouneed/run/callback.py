"""The reports of a run, and the interfaces that a caller may implement: callback, evaluator and reporter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..bundle import Bundle
from ..data.pairs import Pair
from ..train.loop import Update

# Metrics that are computed from all validation pairs without translating them.
WITHOUT_TRANSLATIONS = ("loss", "accuracy")


@dataclass(frozen=True, slots=True)
class Sample:
    """A model's translation of a validation pair, and its score from 0 to 100."""

    source: str
    reference: str
    output: str
    score: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluator: scores by name, and the sentences that they were computed from.

    Higher scores are better. `intervals` has the ends of the 95 % interval of a score, if known.
    """

    scores: Mapping[str, float]
    samples: Sequence[Sample] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)  # sacrebleu's signature of each score
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class Evaluator(Protocol):
    """A function that scores a model on some validation pairs."""

    def __call__(self, bundle: Bundle, pairs: Sequence[Pair], /) -> Evaluation: ...


class Reporter(Protocol):
    """A function that writes the report of the run in `folder`. It calls `message` with a topic and a line of text."""

    def __call__(self, folder: Path, message: Callable[[str, str], None], *, running: bool = False) -> None: ...


def no_report(folder: Path, message: Callable[[str, str], None], *, running: bool = False) -> None:
    """Write no report."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of the validation after update `step`.

    `loss` is the mean training loss since the last validation, or None for an average of checkpoints. `valid_loss` has
    no label smoothing, so its exponential is the perplexity. Both are in nats per token. `accuracy` is the percentage
    of validation tokens that are predicted correctly, given the reference tokens before them. `valid_loss` and
    `accuracy` are None without validation data.

    `gradient_norm` is the mean since the last validation, before clipping. `tokens_per_second` is the speed of the
    updates since the last validation, in target tokens with padding, without the time of validation. `seconds` is the
    training time so far, including the time before a resume. `skipped` counts updates that were not finite. `averaged`
    is the number of checkpoints in the average, if the model is one.
    """

    step: int
    loss: float | None
    learning_rate: float
    valid_loss: float | None
    accuracy: float | None
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    skipped: int = 0
    averaged: int = 1
    gradient_norm: float | None = None
    tokens_per_second: float | None = None
    samples: Sequence[Sample] = ()


def telling_scores(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Choose the scores to show to a reader. A misleading BLEU of 0 becomes None.

    BLEU counts runs of four words, so it is 0 for shorter texts even if translations equal their references.
    """
    means_nothing = scores.get("bleu") == 0 and scores.get("exact", 0.0) > 0
    return {name: None if name == "bleu" and means_nothing else score for name, score in scores.items()}


class TrainingCallback(Protocol):
    """An object with five methods, which `fit` calls in this order.

    Subclass `SilentCallback` to write only some of them. An exception in a method ends the run; `resume` then continues
    from the last checkpoint.
    """

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        """Report progress in preparing pairs: `done` of `total` (None: unknown) in a stage such as "encoding"."""

    def on_train_begin(self, step: int, steps: int) -> None:
        """Report that training starts, or resumes after update `step`. The last update is number `steps`."""

    def on_update(self, update: Update, steps: int) -> None:
        """Report that an update is done. `steps` is the total number of updates planned at present.

        `update.loss` is still on the device: `float(update.loss)` waits for a GPU.
        """

    def on_validation(self, validation: Validation) -> None:
        """Report that the model has been validated and written."""

    def on_message(self, topic: str, text: str) -> None:
        """Report a message about the data, the model or an event. `topic` is one word, such as "rollback"."""


class SilentCallback:
    """A `TrainingCallback` that does nothing."""

    def on_prepare(self, what: str, done: int, total: int | None) -> None: ...
    def on_train_begin(self, step: int, steps: int) -> None: ...
    def on_update(self, update: Update, steps: int) -> None: ...
    def on_validation(self, validation: Validation) -> None: ...
    def on_message(self, topic: str, text: str) -> None: ...
