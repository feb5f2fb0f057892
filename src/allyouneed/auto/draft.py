"""A recipe's tables, whose missing settings are chosen from the corpus, each with a reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Self

from ..bundle import Bundle
from ..config import Recipe
from ..errors import ConfigError
from .choice_rules import (
    ALWAYS,
    BATCH_TOKENS,
    EXACT,
    FINE_TUNING,
    MAX_WARMUP,
    MIN_STEPS,
    PATIENCE,
    VALIDATIONS,
    WARMUP_SHARE,
    Corpus,
    choose_size,
    peak_learning_rate,
    round_to_two_digits,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Some settings, as `section.key` and value, and why they were chosen."""

    settings: Mapping[str, object]
    reason: str

    def __str__(self) -> str:
        """As the overrides that would set the same."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items()) + f"   ({self.reason})"


@dataclass(frozen=True, slots=True)
class Draft:
    """A recipe's tables; settings that are left out are chosen once the corpus is known.

    `model` holds the sizes of the model that the run is initialized from, if there is one.
    """

    tables: Mapping[str, Mapping[str, Any]]
    model: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Self:
        """A draft from the tables of a TOML file; a bundle named in `train.init_from` gives the model's sizes."""
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise ConfigError(f"[{name}] must be a table of settings; got {table!r}")
        start = tables.get("train", {}).get("init_from")
        sizes = Bundle.load(Path(start)).model.config if start else None
        return cls(tables, {} if sizes is None else Recipe(model=sizes).tables()["model"])

    @property
    def recipe(self) -> Recipe:
        """The recipe with the paper's values for settings that are left out."""
        return Recipe.from_tables({**self.tables, "model": {**self.model, **self.tables.get("model", {})}})

    @property
    def preliminary(self) -> Recipe:
        """A recipe for reading the corpus. Refuses invalid settings, unless they depend on one still to be chosen."""
        model = {**self.model, **self.tables.get("model", {})}
        if not {"d_model", "heads"} <= model.keys():  # the other is still to be chosen, so they need not fit yet
            model = {"heads": 1, "d_k": 1, "d_v": 1, **model}
        return Recipe.from_tables({**self.tables, "model": model, "train": {**ALWAYS, **self.tables.get("train", {})}})

    def merged_into(self, saved: Recipe) -> Recipe:
        """A saved recipe with the settings of this draft, for resuming a run."""
        then = saved.tables()
        return Recipe.from_tables({name: {**then[name], **self.tables.get(name, {})} for name in then})

    def complete(self, corpus: Corpus) -> tuple[Recipe, list[Choice]]:
        """The whole recipe, and each choice that was made for it."""
        tables: dict[str, dict[str, Any]] = {name: dict(table) for name, table in self.recipe_tables().items()}
        choices: list[Choice] = []

        def choose(section: str, reason: str, **settings: object) -> None:
            new = {key: value for key, value in settings.items() if key not in tables[section]}
            tables[section].update(new)
            if new:
                choices.append(Choice({f"{section}.{key}": value for key, value in new.items()}, reason))

        model, train = tables["model"], tables["train"]
        size, why = choose_size(corpus)
        choose(
            "model", why, d_model=size.d_model, d_ff=size.d_ff, heads=size.heads, encoder_layers=size.layers,
            decoder_layers=size.layers,
        )  # fmt: skip
        if corpus.exact:
            choose("model", "strings of characters with one correct output", dropout=EXACT["dropout"])
            choose("train", "the same", label_smoothing=EXACT["label_smoothing"])
        choose("model", "the fewer the pairs, the more a model overfits", dropout=size.dropout)

        hardware = "GPU" if corpus.gpu else "CPU"
        batch = max(BATCH_TOKENS[hardware], corpus.longest)
        choose("train", f"on a {hardware}; at least the longest sentence", batch_tokens=batch)
        per_epoch = corpus.tokens / (train["batch_tokens"] * train.get("accumulate_steps", 1))
        epochs = FINE_TUNING["epochs"] if self.model else size.epochs
        fewest = FINE_TUNING["min_steps"] if self.model else MIN_STEPS
        steps = max(int(fewest), round_to_two_digits(epochs * per_epoch))
        choose("train", f"about {steps / per_epoch:.0f} epochs", steps=steps)
        steps = train["steps"]

        choose("train", "trains in half of Adam's time", optimizer=ALWAYS["optimizer"])
        choose("train", "bfloat16 where the device has fast instructions for it", precision="auto")
        warmup = max(1, min(MAX_WARMUP, round_to_two_digits(steps * WARMUP_SHARE)))
        why = "linear warmup, then linear decay to zero"
        choose("train", why, schedule="constant", warmup=warmup)
        if train["schedule"] != "cosine":
            choose("train", why, cooldown=max(0, steps - train["warmup"]))
        peak, why = peak_learning_rate(model["d_model"], train["optimizer"]), f"for d_model={model['d_model']}"
        if self.model:
            peak, why = peak * FINE_TUNING["learning_rate_factor"], f"{why}, lower for fine-tuning"
        choose("train", why, learning_rate=float(f"{peak:.2g}"))
        choose("train", f"{VALIDATIONS} validations", validate_every=max(1, ceil(steps / VALIDATIONS)))
        choose(
            "train", "not needed when the learning rate ends at zero", average_checkpoints=ALWAYS["average_checkpoints"]
        )
        if corpus.has_valid:
            choose(
                "train",
                "the best model by chrF on the validation pairs is kept",
                patience=PATIENCE,
                early_stopping_metric="chrf",
            )
        try:
            return Recipe.from_tables(tables), choices
        except ConfigError as error:
            named = [
                f"{name}={value}"
                for choice in choices
                for name, value in choice.settings.items()
                if re.search(rf"\b{name.partition('.')[2]}\b", str(error))
            ]
            chosen = f" ({', '.join(named)} was chosen here; set it too)" if named else ""
            raise ConfigError(f"{error}{chosen}") from error

    def recipe_tables(self) -> dict[str, Mapping[str, Any]]:
        """All five tables; [model] has the sizes of the initial model."""
        tables = {name: self.tables.get(name, {}) for name in ("data", "clean", "model", "train", "decode")}
        return tables | {"model": {**self.model, **tables["model"]}}
