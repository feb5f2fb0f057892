"""A recipe: all sections together, as in a TOML file."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

from ..errors import ConfigError
from .data_config import CleanConfig, DataConfig
from .decode_config import DecodeConfig
from .model_config import ModelConfig
from .settings import Checked, apply_overrides, build_settings, read_tables, refuse_unknown
from .train_config import TrainConfig

# The vocabulary decides these; a recipe does not set them.
FROM_VOCABULARY = ("vocab_size", "target_vocab_size", "pad_id", "target_pad_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe(Checked):
    """All settings of a run. `model` has the sizes of the vocabulary only after it is learned."""

    data: DataConfig = field(default_factory=DataConfig)
    clean: CleanConfig = field(default_factory=CleanConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    @classmethod
    def read(cls, path: str | Path, overrides: Iterable[str] = ()) -> Self:
        """Read a recipe from a TOML file, with `section.key=value` overrides.

        Refuses unknown keys, and lists the known ones.
        """
        tables = read_tables(path)
        changes = list(overrides)
        tables = apply_overrides(tables, changes)
        try:
            return cls.from_tables(tables)
        except ConfigError as error:
            raise ConfigError(f"{' '.join([f'{path} with', *changes]) if changes else path}: {error}") from error

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Self:
        """Make a recipe from the tables of a TOML file."""
        sections: dict[str, Any] = {section.name: section.type for section in dataclasses.fields(cls)}
        elsewhere = full_names()
        refuse_unknown(tables, sections, where="the recipe", elsewhere=elsewhere)
        model = tables.get("model")
        for key in FROM_VOCABULARY:
            if isinstance(model, Mapping) and key in model:
                raise ConfigError(f"model.{key} follows from the vocabulary; set data.vocab_size instead")
        return cls(
            **{
                name: build_settings(sections[name], table, where=f"[{name}]", elsewhere=elsewhere)
                for name, table in tables.items()
            }
        )

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return this recipe as the tables of a TOML file: `Recipe.from_tables(recipe.tables())` equals it."""
        tables = dataclasses.asdict(self)
        for name in FROM_VOCABULARY:
            del tables["model"][name]
        return {
            section: {key: value for key, value in table.items() if value is not None}
            for section, table in tables.items()
        }


def full_names() -> dict[str, str]:
    """Return every key with the tables that have it: "train.seed or decode.seed"."""
    names: dict[str, list[str]] = {}
    for section in dataclasses.fields(Recipe):
        for known in dataclasses.fields(cast(Any, section.type)):
            if section.name != "model" or known.name not in FROM_VOCABULARY:
                names.setdefault(known.name, []).append(f"{section.name}.{known.name}")
    return {key: " or ".join(full) for key, full in names.items()}
