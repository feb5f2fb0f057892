"""How settings are held: frozen classes that refuse at birth what cannot be, read from the tables of TOML."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from .errors import ConfigError

Settings = TypeVar("Settings")


def require_whole(name: str, value: object, *, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least` (1e4 is a float)."""
    if type(value) is not int:
        raise ConfigError(f"{name} must be a whole number; got {value!r}")
    if value < least:
        raise ConfigError(f"{name} must be at least {least}; got {value}")


def require_share(name: str, value: float) -> None:
    """Refuse what is not in [0, 1)."""
    if not 0 <= value < 1:
        raise ConfigError(f"{name} must be at least 0 and less than 1; got {value}")


class Checked:
    """A settings class whose values are held against their annotations when it is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, list) and _takes_tuple(kind):  # TOML has lists only
                object.__setattr__(self, name, value := tuple(value))
            elif kind is float and type(value) is int:
                object.__setattr__(self, name, value := float(value))
            if not _fits(value, kind):
                raise ConfigError(f"{name} must be {_in_words(kind)}; got {value!r}")


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file as they stand there."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error.strerror or error}") from error


def overridden(tables: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Tables with `section.key=value` overrides put in."""
    for override in overrides:
        section, key, value = _parse_override(override)
        table = tables.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value
    return tables


def settings(kind: type[Settings], table: object, *, where: str) -> Settings:
    """One settings class from a table of its fields; `where` is what an error calls the table."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table of settings; got {table!r}")
    refuse_unknown(table, get_type_hints(kind), where=where)
    try:
        return kind(**table)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from error


def refuse_unknown(table: Mapping[str, Any], known: Iterable[str], *, where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ConfigError(f'unknown key "{unknown[0]}" in {where}; known keys: {", ".join(sorted(known))}')


def _parse_override(text: str) -> tuple[str, str, object]:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot):
        raise ConfigError(f"an override is written section.key=value, like train.steps=2000; got {text!r}")
    try:
        return section, key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return section, key, value.strip()  # a bare word: norm=pre


def _takes_tuple(kind: object) -> bool:
    return get_origin(kind) is tuple or any(_takes_tuple(part) for part in _choices(kind))


def _choices(kind: object) -> tuple[object, ...]:
    return get_args(kind) if get_origin(kind) is UnionType or isinstance(kind, UnionType) else ()


def _fits(value: object, kind: Any) -> bool:
    if _choices(kind):
        return any(_fits(value, part) for part in _choices(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(isinstance(part, get_args(kind)[0]) for part in value)
    return type(value) is kind


def _in_words(kind: Any) -> str:
    if _choices(kind):
        return " or ".join(_in_words(part) for part in _choices(kind))
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list of strings" if get_args(kind)[0] is str else "a list of tables"
    words = {
        int: "a whole number",
        float: "a number",
        str: "a string",
        bool: "true or false",
        NoneType: "left out",
    }
    return words[kind]
