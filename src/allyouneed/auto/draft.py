"""A draft: the tables of a recipe with settings left out, which are then chosen from the corpus, each with a reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ..bundle import Bundle
from ..config import DataConfig, Recipe
from ..errors import ConfigError
from .choice_rules import ALWAYS, FEW_SENTENCES, Corpus
from .rules import RULES, Known, Settings
from .statistics import PairStatistics
from .task_rules import choose_vocabulary, task_kind

# A draft that sets any of these has a vocabulary, so none is chosen.
VOCABULARY_SETTINGS = {
    "vocabulary", "source_vocabulary", "target_vocabulary", "vocab_size", "joint_vocabulary", "alphabet", "bpe_codes",
    "tokenizer", "subword_sampling", "made_up",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings that were chosen, by `section.key`, with their values and the reason for them."""

    settings: Mapping[str, object]
    reason: str

    def __str__(self) -> str:
        """Format the settings as overrides that would set the same values."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items()) + f"   ({self.reason})"


@dataclass(frozen=True, slots=True)
class Draft:
    """The tables of a recipe. Settings that they leave out are chosen once the corpus is known.

    If the run is initialized from a model, `model` has that model's sizes, and `inherited` its search settings and
    license, by section. `chosen` are choices that are already in the tables. `statistics` are the pairs' statistics, if
    they were measured, and `speed` is the machine's, as in `Corpus`.
    """

    tables: Mapping[str, Mapping[str, Any]]
    model: Mapping[str, Any] = field(default_factory=dict)
    chosen: tuple[Choice, ...] = ()
    statistics: PairStatistics | None = None
    inherited: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    speed: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], *, resumed: Recipe | None = None) -> Self:
        """Make a draft from the tables of a TOML file.

        A bundle named in `train.init_from` provides the model's sizes, and the search settings and license that the
        tables leave out. For a resumed run, its recipe (`resumed`) provides them.
        """
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise ConfigError(f"[{name}] must be a table of settings; got {table!r}")
        start = tables.get("train", {}).get("init_from")
        if not start:
            return cls(tables)
        if resumed is None:
            bundle = Bundle.load(Path(start))
            data = DataConfig(license=bundle.license)
            resumed = Recipe(model=bundle.model.config, decode=bundle.decode, data=data)
        known = resumed.tables()
        inherited = {"decode": known["decode"], "data": {"license": resumed.data.license}}
        return cls(tables, known["model"], inherited=inherited)

    @property
    def recipe(self) -> Recipe:
        """The recipe with the paper's values for settings that are left out."""
        return Recipe.from_tables({**self.tables, **self.recipe_tables()})

    @property
    def preliminary(self) -> Recipe:
        """A recipe for reading the corpus. Refuses invalid settings, unless they depend on later choices."""
        model = {**self.model, **self.tables.get("model", {})}
        if not {"d_model", "heads"} <= model.keys():  # the other one is not chosen yet, so they need not fit
            model = {"heads": 1, "d_k": 2, "d_v": 2, **model}
        train = {**ALWAYS, **self.tables.get("train", {})}
        train.setdefault("ensemble", train.get("parallel_models", 1))  # not chosen yet
        return Recipe.from_tables({**self.tables, **self.recipe_tables(), "model": model, "train": train})

    @property
    def is_exact(self) -> bool:
        """True if only one target is correct, by the statistics or, without any, because tokens are characters."""
        if self.statistics:
            return task_kind(self.statistics)[0] != "text"
        return "characters" in self.preliminary.data.vocabularies()

    def merged_into(self, saved: Recipe) -> Recipe:
        """Put the settings of this draft into a saved recipe, for resuming a run."""
        then = saved.tables()
        return Recipe.from_tables({name: {**then[name], **self.tables.get(name, {})} for name in then})

    def with_statistics(self, statistics: PairStatistics) -> Self:
        """Add the statistics of the pairs and, unless the draft sets a vocabulary, one that suits the pairs."""
        draft = replace(self, statistics=statistics)
        if self.model or VOCABULARY_SETTINGS & self.tables.get("data", {}).keys():
            return draft
        settings, reason = choose_vocabulary(statistics)
        return draft.with_choice({f"data.{key}": value for key, value in settings.items()}, reason)

    def with_choice(self, settings: Mapping[str, object], reason: str) -> Self:
        """Add settings, by `section.key`, and the reason for them."""
        if not settings:
            return self
        draft = self.with_settings(settings)
        return replace(draft, chosen=(*draft.chosen, Choice(settings, reason)))

    def with_settings(self, settings: Mapping[str, object]) -> Self:
        """Add settings, by `section.key`. They replace chosen settings."""
        tables = {name: dict(table) for name, table in self.tables.items()}
        for name, value in settings.items():
            section, _, key = name.partition(".")
            tables.setdefault(section, {})[key] = value
        earlier = (
            Choice({name: value for name, value in choice.settings.items() if name not in settings}, choice.reason)
            for choice in self.chosen
        )
        return replace(self, tables=tables, chosen=tuple(choice for choice in earlier if choice.settings))

    def warning(self, pairs: int) -> str:
        """Warn if there are too few training pairs; return "" if there are enough."""
        if self.model or pairs >= FEW_SENTENCES or not self.statistics or self.is_exact:
            return ""
        return (
            f"{pairs:,} sentence pairs are too few for general translation; a base model helps: allyouneed import "
            "FOLDER --output models/base, then this command with --init-from models/base"
        )

    def complete(self, corpus: Corpus) -> tuple[Recipe, list[Choice]]:
        """Return the complete recipe, and each choice that `auto/rules.py` made for it."""
        tables: dict[str, dict[str, Any]] = {name: dict(table) for name, table in self.recipe_tables().items()}
        choices = list(self.chosen)
        known = Known(corpus, self.statistics, tables, is_new=not self.model)
        for rule in RULES:
            if not rule.when(known):
                continue
            choice = Choice(_left_out(rule.settings(known), tables), rule.why(known))
            if choice.settings:
                choices.append(choice)
            for name, value in choice.settings.items():
                section, _, key = name.partition(".")
                tables[section][key] = value
        try:
            return Recipe.from_tables(tables), choices
        except ConfigError as error:
            raise ConfigError(f"{error}{_named_choices(choices, str(error))}") from error

    def recipe_tables(self) -> dict[str, Mapping[str, Any]]:
        """Return all five tables, with the settings that the initial model provides."""
        from_model = {**self.inherited, "model": self.model}
        names = ("data", "clean", "model", "train", "decode")
        return {name: {**from_model.get(name, {}), **self.tables.get(name, {})} for name in names}


def _left_out(settings: Settings, tables: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Return the settings that the tables do not have."""
    names = {name: name.partition(".") for name in settings}
    return {name: settings[name] for name, (section, _, key) in names.items() if key not in tables[section]}


def _named_choices(choices: Sequence[Choice], message: str) -> str:
    """List the chosen settings that a message mentions, so that the user can set them; "" if there are none."""
    named = [
        f"{name}={value}"
        for choice in choices
        for name, value in choice.settings.items()
        if re.search(rf"\b{name.partition('.')[2]}\b", message)
    ]
    return f" ({', '.join(named)} was chosen here; set it too)" if named else ""


def preliminary_recipe(recipe: Recipe | Draft) -> Recipe:
    """Return a recipe itself, or the preliminary recipe of a draft."""
    return recipe.preliminary if isinstance(recipe, Draft) else recipe


def with_data(recipe: Recipe | Draft, settings: Mapping[str, Any]) -> Recipe | Draft:
    """Change settings of [data] in a recipe or draft."""
    if isinstance(recipe, Draft):
        return recipe.with_settings({f"data.{name}": value for name, value in settings.items()})
    return replace(recipe, data=replace(recipe.data, **settings))
