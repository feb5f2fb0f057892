"""The options of a search, generated from the fields of `DecodeConfig`: type, meaning and name stand there once."""

from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.markup import escape

from ..config import DecodeConfig

SearchSettings = dict[str, Any]  # fields of `DecodeConfig` by name

# The panels of the help page; settings in none of them stand among the command's own options.
PANELS = {
    "Length": (
        "alpha", "length_penalty", "patience", "extra_length", "length_ratio", "max_length", "min_length", "min_ratio",
    ),
    "Repetition and variety": (
        "no_repeat_ngram_size", "repetition_penalty", "retry_repetition", "beam_groups", "diversity_penalty",
    ),
    "Sampling": ("sample", "temperature", "top_k", "top_p", "seed"),
    "Constraints": ("copy_spans", "replace_unknown", "copy_untranslatable"),
}  # fmt: skip


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with an option for every field of `DecodeConfig`.

    The command gets those that the call names as one dict, its parameter `decode`; the bundle has the others.
    """
    known = {field.name: field for field in fields(DecodeConfig)}

    @wraps(command)
    def wrapped(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in known}
        decode = {name: _parse(known[name], value) for name, value in values.items() if value is not None}
        command(**arguments, decode=decode)

    options = {name: _option(field) for name, field in known.items()}
    before = [parameter for name, parameter in signature(command).parameters.items() if name != "decode"]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=option, default=None) for name, option in options.items()
    ]
    wrapped.__dict__["__signature__"] = signature(command).replace(parameters=[*before, *added])
    annotations = {name: kind for name, kind in command.__annotations__.items() if name != "decode"}
    wrapped.__annotations__ = {**annotations, **options}
    return wrapped


def _option(field: "Field[Any]") -> Any:
    kind = field.type if field.type in (bool, int, float) else str
    name = field.name.replace("_", "-")
    panel = next((panel for panel, names in PANELS.items() if field.name in names), None)
    flags = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
    option = typer.Option(flags, help=_help(field), show_default=False, rich_help_panel=panel)
    return Annotated[kind | None, option]


def _help(field: "Field[Any]") -> str:
    kind, meaning = field.type, field.metadata["help"]
    text = f"{meaning[0].upper()}{meaning[1:]}."
    if get_origin(kind) is Literal:
        text += f" One of {', '.join(get_args(kind))}."
    elif _is_list(field):
        text += f" Any of {', '.join(get_args(get_args(kind)[0]))}, with commas between."
    return escape(text)


def _is_list(field: "Field[Any]") -> bool:
    return get_origin(field.type) is tuple


def _parse(field: "Field[Any]", value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if _is_list(field) else value
