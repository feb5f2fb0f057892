"""The base of all settings: frozen dataclasses that check their values, and how they are read from TOML tables."""

import dataclasses
import operator
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import ConfigError
from ..machine.files import read_whole
from .suggest import suggestion

Settings = TypeVar("Settings", bound="Checked")
Value = TypeVar("Value")

LARGEST_RECIPE = 10_000_000  # bytes; the longest alphabets take a few hundred thousand


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """The numbers that a setting may have. NaN is never allowed."""

    at_least: float | None = None
    more_than: float | None = None
    at_most: float | None = None
    less_than: float | None = None

    def __contains__(self, number: float) -> bool:
        return all(_COMPARE[end](number, bound) for end, bound in self.ends().items())

    def __str__(self) -> str:
        return " and ".join(f"{end.replace('_', ' ')} {bound}" for end, bound in self.ends().items())

    def ends(self) -> dict[str, float]:
        """Return the bounds that are set, by name."""
        return {end: bound for end in _COMPARE if (bound := getattr(self, end)) is not None}


_COMPARE = {"at_least": operator.ge, "more_than": operator.gt, "at_most": operator.le, "less_than": operator.lt}

SHARE = Range(at_least=0, less_than=1)
COUNT = Range(at_least=1, at_most=2**31 - 1)
COUNT_OR_NONE = Range(at_least=0, at_most=2**31 - 1)
SEED = Range(at_least=0, at_most=2**63 - 1)


def setting(
    default: Value, meaning: str, allowed: Range | None = None, *, paper: str = "", imported: bool = False
) -> Value:
    """Make a field of a settings class; the metadata has its meaning, the range of a number, and the paper's value.

    An `imported` setting is not listed, because only bundles of imported models use it.
    """
    return field(default=default, metadata={"help": meaning, "range": allowed, "paper": paper, "imported": imported})


def require_whole(name: str, value: object, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least`. 1e4 is a float, so it is refused too."""
    if type(value) is not int:
        raise ConfigError(f"{name} must be a whole number; got {value!r}")
    if value < least:
        raise ConfigError(f"{name} must be at least {least}; got {value}")


def require_fraction(name: str, value: float) -> None:
    """Refuse a number outside [0, 1)."""
    if value not in SHARE:
        raise ConfigError(f"{name} must be {SHARE}; got {value}")


class Checked:
    """The base class of settings, which checks the type and the range of every value when an object is created."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __post_init__(self) -> None:
        for known in dataclasses.fields(self):
            value = getattr(self, known.name)
            kind = known.type
            allowed = known.metadata.get("range")
            if _takes_tuple(kind):
                value = _as_tuple(value, kind)
            if not (_fits(value, kind) or (kind is float and type(value) is int)):
                raise ConfigError(f"{known.name} must be {describe_type(kind)}; got {format_value(value)}")
            if allowed is not None and isinstance(value, int | float) and value not in allowed:
                raise ConfigError(f"{known.name} must be {allowed}; got {format_value(value)}")
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str) and not _is_text(text):
                    raise ConfigError(
                        f"{known.name} must be text in UTF-8 without NUL characters; got {format_value(text)}"
                    )
            object.__setattr__(self, known.name, float(value) if kind is float else value)

    def changed(self, *names: str) -> list[str]:
        """List the fields among `names` that do not have their default."""
        defaults = {known.name: known.default for known in dataclasses.fields(self)}
        return [name for name in names if getattr(self, name) != defaults[name]]

    def describe_values(self, *names: str) -> str:
        """Format some values for a message. Defaults are marked as such, because the user may not have set them."""
        defaults = {known.name: known.default for known in dataclasses.fields(self)}
        return ", ".join(
            f"{name}={format_value(getattr(self, name))}{' (the default)' * (getattr(self, name) == defaults[name])}"
            for name in names
        )


def format_value(value: object) -> str:
    """Format a value for a message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print a number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 200 else f"{text[:200]}…"


def read_tables(path: str | Path) -> dict[str, Any]:
    """Read the tables of a TOML file, unchecked."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_RECIPE:
            raise ConfigError(f"{path} is larger than {LARGEST_RECIPE:,} bytes, too large for a recipe")
        return _parsed(read_whole(path).decode())
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist") from None
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error.strerror or error}") from error


def apply_overrides(tables: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Apply `section.key=value` overrides to tables."""
    for override in overrides:
        section, key, value = _parse_override(override)
        table = tables.setdefault(section, {})
        if isinstance(table, dict):
            table[key] = value
    return tables


def build_settings(
    kind: type[Settings], table: object, *, where: str, elsewhere: Mapping[str, str] | None = None
) -> Settings:
    """Build a settings class from a table of its fields.

    `where` names the table in error messages. `elsewhere` has the full names of keys that belong to other tables.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where.rstrip(',')} must be a table of settings; got {format_value(table)}")
    known = [known.name for known in dataclasses.fields(kind)]
    removed: Mapping[str, object] = getattr(kind, "REMOVED", {})  # bundles and recipes of earlier versions have them
    table = {key: value for key, value in table.items() if key not in removed or value != removed[key]}
    refuse_unknown(table, known, where=where, elsewhere=elsewhere)
    try:
        return kind(**table)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from error


def build_parts(kinds: Mapping[str, type], table: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Build the settings of several classes, each from the table with its name."""
    return {name: build_settings(kind, table.get(name), where=f"{where}, {name},") for name, kind in kinds.items()}


def from_table(kind: Any, table: Any, optional: Collection[str] = (), *, name: str = "a value") -> Any:
    """Rebuild a dataclass from the result of `dataclasses.asdict`, or from that result as JSON.

    Refuses values of other types, and a table that lacks a field, unless the field is `optional`. `name` is for
    messages.
    """
    build: Callable[..., Any] = kind
    if dataclasses.is_dataclass(kind):
        types = get_type_hints(kind)
        if missing := types.keys() - table.keys() - {*optional}:
            raise KeyError(min(missing))
        return build(**{name: from_table(types[name], value, optional, name=name) for name, value in table.items()})
    inner = get_args(kind)
    if get_origin(kind) is dict:
        return {name: from_table(inner[1], value, optional) for name, value in table.items()}
    if inner and isinstance(table, list | tuple):
        return get_origin(kind)(from_table(inner[0], value, optional) for value in table)
    if type(table) is not kind and not (kind is float and type(table) is int):
        raise TypeError(f"{name} must be {describe_type(kind)}; got {format_value(table)}")
    return table


def refuse_unknown(
    table: Mapping[str, Any], known: Iterable[str], *, where: str, elsewhere: Mapping[str, str] | None = None
) -> None:
    """Refuse an unknown key, and name the key that was probably meant."""
    known = sorted(known)
    for key in table:
        if key not in known:
            meant = suggestion(key, known, elsewhere or {})
            hint = f": did you mean {meant}? Known" if meant else "; known"
            raise ConfigError(
                f'unknown key "{format_value(key)[1:-1]}" in {where.rstrip(",")}{hint} keys: {", ".join(known)}'
            )


def _parse_override(text: str) -> tuple[str, str, object]:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f"an override is written section.key=value, like train.steps=2000; got {format_value(text)}")
    try:
        table = _parsed(f"value = {value}")
    except ValueError:
        return section, key, value.strip()  # a string without quotes: norm=pre
    if list(table) != ["value"]:
        raise ConfigError(f"an override sets one value; got {format_value(text)}")
    return section, key, table["value"]


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def _is_text(text: str) -> bool:
    """Return True if a file or a path can contain the text: it has no surrogates, which stand for invalid UTF-8."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)


def _takes_tuple(kind: object) -> bool:
    return get_origin(kind) is tuple or any(_takes_tuple(part) for part in _choices(kind))


def _as_tuple(value: object, kind: object) -> object:
    """Turn a list into a tuple, also from a string, in case a shell has dropped quotation marks or brackets."""
    if isinstance(value, str) and (get_origin(kind) is tuple or re.fullmatch(r"\[.*\]", value)):
        value = [part.strip().strip("\"'") for part in value.strip("[]").split(",")] if value.strip("[] ") else []
    if isinstance(value, list):
        is_list = get_origin(kind) is tuple  # names of columns, which may be numbers
        return tuple(str(part) if is_list and type(part) is int else part for part in value)
    return value


def _choices(kind: object) -> tuple[object, ...]:
    return get_args(kind) if get_origin(kind) in (UnionType, Union) else ()


def _fits(value: object, kind: Any) -> bool:
    if _choices(kind):
        return any(_fits(value, part) for part in _choices(kind))
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_fits(part, get_args(kind)[0]) for part in value)
    return type(value) is kind


def describe_type(kind: Any) -> str:
    """Describe the values of a type in words: "a whole number", 'one of "post", "pre"'."""
    if _choices(kind):
        return " or ".join(describe_type(part) for part in _choices(kind))
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is tuple:
        part = get_args(kind)[0]
        if get_origin(part) is Literal:
            return f"a list of some of {describe_type(part).removeprefix('one of ')}"
        return "a list of strings" if part is str else "a list of tables"
    words = {
        int: "a whole number",
        float: "a number",
        str: "a string",
        bool: "true or false",
        NoneType: "left out",
    }
    return words.get(kind, "a table of settings")
