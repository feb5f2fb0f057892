"""The settings as a reference: for the docs, for the command line, and as a JSON Schema for editors."""

import dataclasses
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import tomli_w

from ..errors import ConfigError
from . import (
    FROM_VOCABULARY,
    CleanConfig,
    CorpusConfig,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    Recipe,
    TrainConfig,
)
from .settings import Checked, describe_type, refuse_unknown
from .suggest import suggestion

SCHEMA = Path(__file__).parents[1] / "recipes/recipe.schema.json"  # for editors; written by docs/make/schema.py
SECTIONS: dict[str, type[Checked]] = {
    "data": DataConfig,
    "data.corpus": CorpusConfig,
    "clean": CleanConfig,
    "model": ModelConfig,
    "train": TrainConfig,
    "decode": DecodeConfig,
}


class SettingInfo(NamedTuple):
    """A setting: its full name, allowed values, default as TOML, meaning, and the paper's value if it has one."""

    section: str
    key: str
    values: str
    default: str
    meaning: str
    paper: str

    @property
    def name(self) -> str:
        """The name of the setting on the command line."""
        return f"{self.section}.{self.key}"

    def describe(self) -> str:
        """Describe a setting in sentences: its meaning, its allowed values and the paper's value."""
        paper = f" In the paper: {self.paper}." if self.paper else ""
        return f"{_sentence(self.meaning)} {_sentence(self.values)}{paper}"


def list_settings(section: str, *, imported: bool = False) -> list[SettingInfo]:
    """List the settings of a section of a recipe; with `imported`, also the settings for imported models."""
    return [
        SettingInfo(
            section,
            known.name,
            ", ".join(filter(None, [describe_type(known.type), str(known.metadata["range"] or "")])),
            _toml(known.default),
            known.metadata["help"],
            known.metadata["paper"],
        )
        for known in _fields(section)
        if imported or not known.metadata["imported"]
    ]


def find_settings(name: str) -> list[SettingInfo]:
    """Find the settings that `name` may mean: all of a section, one by its full name, or all keys of that name."""
    if name in SECTIONS:
        return list_settings(name)
    known = [setting for section in SECTIONS for setting in list_settings(section, imported=True)]
    return [setting for setting in known if name in (setting.name, setting.key)]


def refuse_misspelt(name: str) -> None:
    """Refuse an unknown name that resembles the name of an existing setting."""
    section, _, key = name.rpartition(".")
    elsewhere = {setting.key: setting.name for other in SECTIONS for setting in list_settings(other, imported=True)}
    if section in SECTIONS:
        known = [setting.key for setting in list_settings(section, imported=True)]
        refuse_unknown({key: None}, known, where=f"[{section}]", elsewhere=elsewhere)
    elif not section and (meant := suggestion(key, (), elsewhere)):
        raise ConfigError(f"there is no setting {name}; did you mean {meant}?")


def commented_recipe(recipe: Recipe) -> str:
    """Write a recipe as TOML with a comment above each setting that describes it. Reading it gives the same recipe."""
    lines = [f"#:schema {SCHEMA.as_uri()}"]
    for section in SECTIONS:
        if section == "data.corpus":
            for corpus in recipe.data.corpus:
                lines += ["", "[[data.corpus]]", *_commented(section, corpus)]
        else:
            lines += ["", f"[{section}]", *_commented(section, getattr(recipe, section))]
    return "\n".join(lines) + "\n"


def recipe_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe, with which editors complete and check TOML files."""
    sections = {section: _table_schema(section) for section in SECTIONS if "." not in section}
    sections["data"]["properties"]["corpus"] |= {"type": "array", "items": _table_schema("data.corpus")}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A recipe of allyouneed",
        "type": "object",
        "properties": sections,
        "additionalProperties": False,
    }


def _commented(section: str, values: Checked) -> Iterator[str]:
    for setting in list_settings(section, imported=True):
        value = getattr(values, setting.key)
        if setting.name != "data.corpus":
            yield from textwrap.wrap(setting.describe(), 100, initial_indent="# ", subsequent_indent="# ")
            yield f"# {setting.key} is left out" if value is None else f"{setting.key} = {_toml(value)}"


def _table_schema(section: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": (SECTIONS[section].__doc__ or "").split("\n")[0],
        "properties": {known.name: _value_schema(known) for known in _fields(section)},
        "additionalProperties": False,
    }


def _value_schema(known: "dataclasses.Field[Any]") -> dict[str, Any]:
    paper = f" In the paper: {known.metadata['paper']}." if known.metadata["paper"] else ""
    schema = {"description": _sentence(known.metadata["help"]) + paper} | _type_schema(known.type)
    names = {"at_least": "minimum", "more_than": "exclusiveMinimum"}
    names |= {"at_most": "maximum", "less_than": "exclusiveMaximum"}
    if allowed := known.metadata["range"]:
        schema |= {names[end]: bound for end, bound in allowed.ends().items()}
    default = list(known.default) if isinstance(known.default, tuple) else known.default
    return schema if default is None else schema | {"default": default}


def _type_schema(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return {"type": "array"} | ({} if item is CorpusConfig else {"items": _type_schema(item)})
    # TOML has no null: a key is left out instead.
    if parts := [part for part in get_args(kind) if part is not NoneType]:
        return _type_schema(parts[0]) if len(parts) == 1 else {"anyOf": [_type_schema(part) for part in parts]}
    return {"type": {int: "integer", float: "number", str: "string", bool: "boolean"}[kind]}


def _fields(section: str) -> "list[dataclasses.Field[Any]]":
    hidden = FROM_VOCABULARY if section == "model" else ()
    return [known for known in dataclasses.fields(SECTIONS[section]) if known.name not in hidden]


def _toml(value: object) -> str:
    return "left out" if value is None else tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
