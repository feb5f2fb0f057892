"""What a recipe leaves out, chosen from the corpus: how big a model, how long a run, and why.

The rules are the tables below. Small models win on small corpora: on 30,000 pairs (Multi30K, tokenised)
three layers of 256 reach 39.8 BLEU here, the paper's base model 38.3 (Wu et al., 2021, table 2). Small
batches win where time is short, and a rate that ends at zero does what a mean of checkpoints would.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..bundle import Bundle
from ..config import Recipe
from ..errors import ConfigError


class Size(NamedTuple):
    """A model for corpora of up to so many pairs, and how often it sees each of them."""

    pairs: float
    d_model: int
    d_ff: int
    heads: int
    layers: int  # of the encoder, and of the decoder
    dropout: float
    epochs: float


SIZES = (
    Size(3_000, d_model=64, d_ff=256, heads=4, layers=2, dropout=0.3, epochs=60),
    Size(15_000, d_model=128, d_ff=512, heads=4, layers=3, dropout=0.3, epochs=60),
    Size(60_000, d_model=256, d_ff=1024, heads=4, layers=3, dropout=0.25, epochs=22),
    Size(400_000, d_model=256, d_ff=1024, heads=4, layers=3, dropout=0.15, epochs=10),
    Size(2_000_000, d_model=512, d_ff=2048, heads=8, layers=6, dropout=0.1, epochs=10),
    Size(float("inf"), d_model=512, d_ff=2048, heads=8, layers=6, dropout=0.1, epochs=4),
)
LARGEST_WITHOUT_GPU = SIZES[3]

# A string that has one right answer, spelt out letter by letter: little to smooth, little to forget.
EXACT = {"dropout": 0.0, "label_smoothing": 0.0}

# Tokens a batch. A GPU is idle with less; a processor would rather take two steps than one of twice the size.
BATCH_TOKENS = {"processor": 1_024, "GPU": 8_192}

# The highest rate of a run with Muon, by the width of the model.
PEAK_LEARNING_RATES = {64: 0.01, 128: 0.005, 256: 0.003, 512: 0.0015}

SHARE_OF_WARMUP, MOST_WARMUP = 0.05, 2_000
FEWEST_STEPS, PAUSES, PATIENCE = 800, 20, 10

# What is chosen whatever the corpus, if it is not set.
ALWAYS = {"optimizer": "muon", "average_checkpoints": 1}

# A model that has learned already is led on gently, and for a shorter time.
FINE_TUNING = {"epochs": 3.0, "share_of_rate": 0.2, "fewest_steps": 100}


@dataclass(frozen=True, slots=True)
class Corpus:
    """What the rules look at. `tokens` are those of the longer side; `exact` says that letters are the vocabulary."""

    pairs: int
    tokens: int
    longest: int
    has_valid: bool
    exact: bool
    gpu: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Some settings, as `section.key` and value, and why they were chosen."""

    settings: Mapping[str, object]
    reason: str

    def __str__(self) -> str:
        """As the overrides that would say the same."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items()) + f"   ({self.reason})"


@dataclass(frozen=True, slots=True)
class Draft:
    """A recipe's tables, of which what is left out is chosen once the corpus is known.

    `model` are the sizes of the model it begins from, if it begins from one.
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
        """The recipe with the paper's values for what is left out."""
        return Recipe.from_tables({**self.tables, "model": {**self.model, **self.tables.get("model", {})}})

    @property
    def preliminary(self) -> Recipe:
        """A recipe to read the corpus by. Refuses what is set wrongly, but nothing for what is still to be chosen."""
        model = {**self.model, **self.tables.get("model", {})}
        if not {"d_model", "heads"} <= model.keys():  # the other is still to be chosen, so they need not fit yet
            model = {"heads": 1, "d_k": 1, "d_v": 1, **model}
        return Recipe.from_tables({**self.tables, "model": model, "train": {**ALWAYS, **self.tables.get("train", {})}})

    def merged_into(self, saved: Recipe) -> Recipe:
        """A saved recipe with what this draft says itself, for going on with a run."""
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
            choose("model", "spelt letter by letter, with one right answer", dropout=EXACT["dropout"])
            choose("train", "the same", label_smoothing=EXACT["label_smoothing"])
        choose(
            "model", "the fewer the pairs, the more it has to be kept from learning them by heart", dropout=size.dropout
        )

        place = "GPU" if corpus.gpu else "processor"
        batch = max(BATCH_TOKENS[place], corpus.longest)
        choose("train", f"on a {place}; no less than the longest sentence", batch_tokens=batch)
        per_epoch = corpus.tokens / (train["batch_tokens"] * train.get("accumulate_steps", 1))
        epochs = FINE_TUNING["epochs"] if self.model else size.epochs
        fewest = FINE_TUNING["fewest_steps"] if self.model else FEWEST_STEPS
        steps = max(int(fewest), round_to_two_digits(epochs * per_epoch))
        choose("train", f"each pair about {steps / per_epoch:.0f} times", steps=steps)
        steps = train["steps"]

        choose("train", "learns in half of Adam's time", optimizer=ALWAYS["optimizer"])
        choose("train", "bfloat16 where the device is made for it", precision="auto")
        warmup = max(1, min(MOST_WARMUP, round_to_two_digits(steps * SHARE_OF_WARMUP)))
        why = "the rate goes up, then down to zero in a straight line"
        choose("train", why, schedule="constant", warmup=warmup)
        if train["schedule"] != "cosine":
            choose("train", why, cooldown=max(0, steps - train["warmup"]))
        rate, why = peak_learning_rate(model["d_model"], train["optimizer"]), f"for a width of {model['d_model']}"
        if self.model:
            rate, why = rate * FINE_TUNING["share_of_rate"], f"{why}, gently: it has learned already"
        choose("train", why, learning_rate=float(f"{rate:.2g}"))
        choose("train", f"{PAUSES} looks at how it does", validate_every=max(1, ceil(steps / PAUSES)))
        choose(
            "train", "the end at rate zero does what a mean would", average_checkpoints=ALWAYS["average_checkpoints"]
        )
        if corpus.has_valid:
            choose(
                "train",
                "the best by chrF on the validation pairs is kept",
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
        """Its tables, all five there; the model's sizes those it begins from."""
        tables = {name: self.tables.get(name, {}) for name in ("data", "clean", "model", "train", "decode")}
        return tables | {"model": {**self.model, **tables["model"]}}


def choose_size(corpus: Corpus) -> tuple[Size, str]:
    """The row of `SIZES` for a corpus, and why."""
    size = next(size for size in SIZES if corpus.pairs <= size.pairs)
    if not corpus.gpu and size.d_model > LARGEST_WITHOUT_GPU.d_model:
        return LARGEST_WITHOUT_GPU._replace(dropout=size.dropout, epochs=size.epochs), (
            f"{corpus.pairs:,} pairs would feed a width of {size.d_model}, but there is no GPU here"
        )
    return size, f"{corpus.pairs:,} pairs; up to {size.pairs:,.0f} this size does well"


def peak_learning_rate(d_model: int, optimizer: str) -> float:
    """The highest rate for a width: that of the next one in the table, or less the wider it is; Adam takes half."""
    widths = [width for width in PEAK_LEARNING_RATES if d_model <= width]
    rate = PEAK_LEARNING_RATES[widths[0]] if widths else PEAK_LEARNING_RATES[512] * 512 / d_model
    return rate if optimizer == "muon" else rate / 2


def round_to_two_digits(number: float) -> int:
    """A whole number with two figures that count, for people to read."""
    figures = max(0, len(str(int(number))) - 2)
    return int(round(number, -figures))
