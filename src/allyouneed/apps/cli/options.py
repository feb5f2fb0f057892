"""Arguments and options of several commands: models, settings of a search, and fields of a settings class."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from ...config import DecodeConfig
from ...settings import Checked, apply_overrides, refuse_unknown

_BUNDLE = typer.Argument(metavar="BUNDLE", help="The folder of a trained model.", show_default=False)
BundleFolder = Annotated[Path, _BUNDLE]
BundleFolders = Annotated[
    str,
    typer.Argument(
        metavar="BUNDLE",
        help="The folder of a trained model; A,B,… is an ensemble.",
        show_default=False,
    ),
]
OptionalBundleFolder = Annotated[Path | None, _BUNDLE]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
PrecisionOption = Annotated[str, typer.Option(help="float32, int8 or auto.")]
CompiledOption = Annotated[
    bool | None,
    typer.Option(
        "--compiled/--no-compiled",
        help="Kernels of Numba. Default: in int8, if compiled.",
        show_default=False,
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(help="A file of lines: term, tab, translation.", show_default=False, rich_help_panel="Search"),
]


def with_config_options(
    config: type[Checked],
    parameter: str,
    *,
    panels: Mapping[str, tuple[str, ...]],
    variables: str = "",
    only: tuple[str, ...] | None = None,
    section: str = "",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command with an option for every field of `config`, or for those of `only`.

    The command gets those that the call names as one dict, its parameter called `parameter`. `panels` groups the
    options on the help page; those in none are among the command's own. With `variables`, a prefix, each option
    can be set by the environment variable of its name too, and its help page tells the default. With `section`
    every field can be set by SECTION.KEY=VALUE among the arguments, as in a recipe.
    """
    fields_by_name = {field.name: field for field in fields(config)}
    known = {name: field for name, field in fields_by_name.items() if only is None or name in only}
    options = {name: _option(field, panels, variables) for name, field in known.items()}
    if section:
        options["settings"] = Annotated[list[str] | None, typer.Option("--set", hidden=True)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(**arguments: Any) -> None:
            table = apply_overrides({}, arguments.pop("settings", None) or []).get(section, {})
            refuse_unknown(table, fields_by_name, where=f"[{section}],")
            values = {name: arguments.pop(name) for name in known}
            chosen = {name: _parse(known[name], value) for name, value in values.items() if value is not None}
            command(**arguments, **{parameter: table | chosen})

        before = [one for name, one in signature(command).parameters.items() if name != parameter]
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=option, default=None) for name, option in options.items()
        ]
        wrapped.__dict__["__signature__"] = signature(command).replace(parameters=[*before, *added])
        annotations = {name: kind for name, kind in command.__annotations__.items() if name != parameter}
        wrapped.__annotations__ = {**annotations, **options}
        return wrapped

    return decorate


def _option(field: "Field[Any]", panels: Mapping[str, tuple[str, ...]], variables: str) -> Any:
    kind = field.type if field.type in (bool, int, float) else str
    name = field.name.replace("_", "-")
    panel = next((panel for panel, names in panels.items() if field.name in names), None)
    flags = f"--{name}/--no-{name}" if kind is bool else f"--{name}"
    option = typer.Option(
        flags,
        help=_help(field, with_default=bool(variables)),
        show_default=False,
        rich_help_panel=panel,
        envvar=f"{variables}{field.name.upper()}" if variables else None,
        show_envvar=False,
    )
    return Annotated[kind | None, option]


def _help(field: "Field[Any]", *, with_default: bool) -> str:
    kind, meaning = field.type, field.metadata["help"]
    text = f"{meaning[0].upper()}{meaning[1:]}."
    if get_origin(kind) is Literal:
        text += f" One of {', '.join(get_args(kind))}."
    elif _is_list(field):
        choices = get_args(get_args(kind)[0])
        text += f" Any of {', '.join(choices)}, with commas between." if choices else " With commas."
    default: Any = field.default
    if with_default and kind is not bool and default not in ("", ()):
        text += f" Default: {','.join(default) if _is_list(field) else default}."
    return text


def _is_list(field: "Field[Any]") -> bool:
    return get_origin(field.type) is tuple


def _parse(field: "Field[Any]", value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if _is_list(field) else value


SearchSettings = dict[str, Any]  # fields of `DecodeConfig` by name


def with_search(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command that gets the settings that the call names as its parameter `decode`.

    The bundle has the others. `options` are the settings that are options, too.
    """
    return with_config_options(DecodeConfig, "decode", only=options, panels={"Search": options}, section="decode")
