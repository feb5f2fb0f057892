"""The table of settings that a recipe may leave out: condition, settings, reason, and where this was measured.

Rules apply from first to last. A setting that the recipe has, or that an earlier rule chose, stays; later rules may
depend on it: the learning rate on the width, the width on the number of pairs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

from .choice_rules import (
    ALWAYS,
    BATCH_TOKENS,
    EXACT_LENGTH_RATIO,
    FINE_TUNING,
    MAX_WARMUP,
    MIN_STEPS,
    PATIENCE,
    STRING_POSITIONS,
    UPDATES_PER_MINUTE,
    VALIDATIONS,
    WARMUP_SHARE,
    YOUNGER_PARTS,
    Corpus,
    Size,
    choose_dropout,
    choose_ensemble,
    choose_exact_regularization,
    choose_exact_size,
    choose_metric,
    choose_size,
    peak_learning_rate,
    round_to_two_digits,
)
from .statistics import PairStatistics
from .task_rules import task_kind

Settings = Mapping[str, object]
"""Settings by `section.key`, with their values."""


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that rules may depend on: the corpus, its pairs' statistics, and the settings so far, by section."""

    corpus: Corpus
    statistics: PairStatistics | None
    tables: Mapping[str, Mapping[str, Any]]
    is_new: bool  # False if a trained model is fine-tuned

    @property
    def is_measured_exact(self) -> bool:
        """True if the statistics show that only one target is correct."""
        return self.corpus.exact and self.statistics is not None

    @property
    def has_strings(self) -> bool:
        """True if the pairs are strings, such as inflected forms and pronunciations."""
        return self.corpus.exact and self.statistics is not None and task_kind(self.statistics)[0] == "strings"

    @property
    def share(self) -> Corpus:
        """The corpus with the time budget of one model of an ensemble."""
        train = self.tables["train"]
        rounds = ceil(train.get("ensemble", 1) / train.get("parallel_models", 1))
        return replace(self.corpus, minutes=self.corpus.minutes / rounds)

    @property
    def size(self) -> tuple[Size, str]:
        """The size of a new model, and why."""
        return choose_exact_size(self.corpus) if self.is_measured_exact else choose_size(self.corpus)

    @property
    def regularization(self) -> tuple[float, float, str]:
        """Dropout and label smoothing, and why."""
        if not self.corpus.exact:
            dropout, why = choose_dropout(self.share, self.size[0], self.tables["model"]["d_model"])
            return dropout, 0.0, why
        if self.statistics is None:
            return 0.0, 0.0, "strings of characters with one correct output"
        return choose_exact_regularization(self.share, self.statistics, self.tables["model"]["d_model"])

    @property
    def hardware(self) -> str:
        """The kind of device that trains."""
        return "GPU" if self.corpus.gpu else "CPU"

    @property
    def updates_per_epoch(self) -> float:
        """The number of updates in which every pair is seen once."""
        train = self.tables["train"]
        tokens: float = train["batch_tokens"] * train.get("accumulate_steps", 1)
        return self.corpus.tokens / tokens

    @property
    def steps(self) -> int:
        """The number of updates in the chosen number of epochs."""
        epochs = self.size[0].epochs if self.is_new else FINE_TUNING["epochs"]
        fewest = MIN_STEPS if self.is_new else FINE_TUNING["min_steps"]
        return max(int(fewest), round_to_two_digits(epochs * self.updates_per_epoch))

    @property
    def learning_rate(self) -> float:
        """The peak learning rate."""
        peak = peak_learning_rate(self.tables["model"]["d_model"], self.tables["train"]["optimizer"])
        return peak if self.is_new else peak * FINE_TUNING["learning_rate_factor"]


class Rule(NamedTuple):
    """A row of the table: `settings` are chosen `when` the condition holds, for the reason `why`.

    `measured` names the page and section of docs/measured/ with the figures behind the rule; "" means a convention of
    the field, or no measurement of its own.
    """

    settings: Callable[[Known], Settings]
    why: Callable[[Known], str]
    when: Callable[[Known], bool] = lambda known: True
    measured: str = ""


def _size_settings(known: Known) -> Settings:
    size, _ = known.size
    return {
        "model.d_model": size.d_model, "model.d_ff": size.d_ff, "model.heads": size.heads,
        "model.encoder_layers": size.layers, "model.decoder_layers": size.layers,
    }  # fmt: skip


def _ensemble(known: Known) -> int:
    parallel_models = known.tables["train"].get("parallel_models", 1)
    return choose_ensemble(known.corpus, known.tables["model"]["d_model"], parallel_models)


def _warmup(known: Known) -> int:
    return max(1, min(MAX_WARMUP, round_to_two_digits(known.tables["train"]["steps"] * WARMUP_SHARE)))


def _cooldown(known: Known) -> int:
    train = known.tables["train"]
    left: int = train["steps"] - train["warmup"]
    return max(0, left)


def _metric(known: Known) -> tuple[str, str]:
    if known.is_measured_exact:
        return "accuracy", "of all validation pairs; the newest model within one standard error of the best is kept"
    return choose_metric(known.share, known.tables["model"]["d_model"])


RULES = (
    Rule(
        _size_settings,
        lambda known: known.size[1],
        measured="experiments.md#the-size-for-30000-pairs",
    ),
    Rule(
        lambda known: {"train.ensemble": _ensemble(known)},
        lambda known: (
            "models make different mistakes and translate together" if _ensemble(known) > 1 else "little time"
        ),
        lambda known: known.is_new and bool(known.corpus.speed) and known.has_strings,
        "strings.md#ensembles",
    ),
    Rule(
        lambda known: {f"model.{name}": value for name, value in STRING_POSITIONS.items()},
        lambda known: "with both kinds of positions strings are right more often in the same minutes",
        lambda known: known.is_new and known.corpus.minutes > 0 and known.has_strings,
        "automatic-settings.md#public-shared-tasks",
    ),
    Rule(
        lambda known: {f"model.{name}": value for name, value in YOUNGER_PARTS.items()},
        lambda known: "parts younger than the paper, with which a short training gets further",
        lambda known: known.is_new and known.corpus.minutes > 0,
        "automatic-settings.md#rotary-positions-and-query-key-norm",
    ),
    Rule(
        lambda known: {"model.dropout": known.regularization[0]},
        lambda known: known.regularization[2],
        measured="automatic-settings.md#few-strings-width-made-up-pairs-several-seeds",
    ),
    Rule(
        lambda known: {"train.label_smoothing": known.regularization[1]},
        lambda known: known.regularization[2] if known.regularization[1] else "one target is right",
        lambda known: known.corpus.exact,
        "automatic-settings.md#few-strings-width-made-up-pairs-several-seeds",
    ),
    Rule(
        lambda known: {"decode.length_ratio": EXACT_LENGTH_RATIO},
        lambda known: "what the model has not ended may go on, beyond the lengths of training",
        lambda known: known.corpus.exact,
    ),
    Rule(
        lambda known: {"decode.replace_unknown": True},
        lambda known: "an unknown character is copied",
        lambda known: known.corpus.exact and bool(known.tables["data"].get("made_up")),
    ),
    Rule(
        lambda known: {"train.batch_tokens": max(BATCH_TOKENS[known.hardware], known.corpus.longest)},
        lambda known: f"on a {known.hardware}; at least the longest sentence",
    ),
    Rule(
        lambda known: {"train.steps": round_to_two_digits(known.share.minutes * UPDATES_PER_MINUTE)},
        lambda known: "the length of the schedule, which is compressed to the time budget",
        lambda known: known.corpus.minutes > 0,
    ),
    Rule(
        lambda known: {"train.steps": known.steps},
        lambda known: f"about {known.steps / known.updates_per_epoch:.0f} epochs",
    ),
    Rule(
        lambda known: {"train.optimizer": ALWAYS["optimizer"]},
        lambda known: "trains in half of Adam's time",
        measured="experiments.md#why-muon",
    ),
    Rule(
        lambda known: {"train.precision": "auto"},
        lambda known: "bfloat16 where the device has fast instructions for it",
        measured="training-speed.md",
    ),
    Rule(
        lambda known: {"train.schedule": "constant", "train.warmup": _warmup(known)},
        lambda known: "linear warmup, then linear decay to zero",
    ),
    Rule(
        lambda known: {"train.cooldown": _cooldown(known)},
        lambda known: "linear warmup, then linear decay to zero",
        lambda known: known.tables["train"]["schedule"] != "cosine",
    ),
    Rule(
        lambda known: {"train.learning_rate": float(f"{known.learning_rate:.2g}")},
        lambda known: (
            f"for d_model={known.tables['model']['d_model']}" + ("" if known.is_new else ", lower for fine-tuning")
        ),
        measured="automatic-settings.md#learning-rates-by-width",
    ),
    Rule(
        lambda known: {"train.validate_every": max(1, ceil(known.tables["train"]["steps"] / VALIDATIONS))},
        lambda known: f"{VALIDATIONS} validations",
    ),
    Rule(
        lambda known: {"train.average_checkpoints": ALWAYS["average_checkpoints"]},
        lambda known: "not needed when the learning rate ends at zero",
    ),
    Rule(
        lambda known: {
            "train.patience": VALIDATIONS if known.is_measured_exact else PATIENCE,
            "train.early_stopping_metric": _metric(known)[0],
        },
        lambda known: _metric(known)[1],
        lambda known: known.corpus.has_valid,
    ),
)
