"""The class of all commands, whose help has groups of options, and the options that several commands share."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ...config import DecodeConfig
from ...config.settings import Checked, apply_overrides, refuse_unknown
from ...errors import ConfigError
from ...machine.interpreter import versions


class PlainValues:
    """Converts parameter values as Typer does, but skips the conversion of texts, paths and defaults.

    Typer's conversion imports Pydantic, which takes half as long as a short translation.
    """

    def __init__(self, make_conversion: Callable[[], Any]) -> None:
        self._make_conversion = make_conversion

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a value if necessary; see Typer's method of the same name."""
        is_one = param.nargs == 1 and not param.multiple
        kind = param.type_descriptor.annotation
        if value is None or value is param.default:
            return value if is_one else value or ()
        if kind == list[str] and not is_one:
            return list(value)
        if is_one and type(value) is str and kind in (str, Path):
            return kind(value)
        return self._make_conversion().coerce(value, param=param, ctx=ctx)


def skip_plain_conversions(parameters: Iterable[Any]) -> None:
    """Make each parameter use `PlainValues`. Does nothing if this version of Typer has no such method."""
    for parameter in parameters:
        if make_conversion := getattr(parameter, "get_runtime_param", None):
            parameter.get_runtime_param = partial(PlainValues, make_conversion)


class CommandGroup(TyperGroup):
    """The program itself, as a group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse like Typer, after `skip_plain_conversions`."""
        skip_plain_conversions(self.get_params(ctx))
        return super().parse_args(ctx, args)


class Command(TyperCommand):
    """A command whose help lists options in groups, and which may take `decode.KEY=VALUE` among its arguments.

    Typer's own layout draws a box around each group, which takes half of a screen.
    """

    def takes_settings(self) -> bool:
        """Return True if settings of the search may be among the arguments."""
        return any(parameter.name == "settings" for parameter in self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass settings on to their hidden option. An argument after `--` is always a text or a file."""
        skip_plain_conversions(self.get_params(ctx))
        if self.takes_settings():
            end = args.index("--") if "--" in args else len(args)
            args = [f"--set={word}" if re.match(r"decode\..*=", word) else word for word in args[:end]] + args[end:]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the "Usage" line."""
        return super().collect_usage_pieces(ctx) + ["[decode.KEY=VALUE]..."] * self.takes_settings()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the groups of options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if row := parameter.get_help_record(ctx):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(row)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def help_text(docstring: str) -> str:
    """Join each paragraph of a docstring into one line, but keep its examples unchanged."""
    text, _, examples = inspect.cleandoc(docstring).partition("\nFor example:")
    text = re.sub(r"(?<=\S)\n(?=\S)", " ", text)
    return f"{text}\n\b\nFor example:{examples}" if examples else text


class CommonOptions:
    """The options that every command has."""

    debug = False


def _set_debug(debug: bool) -> None:
    CommonOptions.debug |= debug


def _print_version(requested: bool) -> None:
    if requested:
        print(versions())
        raise typer.Exit


_DEBUG = {"callback": _set_debug, "help": "Print the traceback after an error; every command takes this option."}
Debug = Annotated[bool, typer.Option("--debug", **_DEBUG)]
_HiddenDebug = Annotated[bool, typer.Option("--debug", hidden=True, **_DEBUG)]
Version = Annotated[
    bool,
    typer.Option(
        "--version",
        "-V",
        is_eager=True,
        callback=_print_version,
        help="Print the versions of allyouneed, Python and PyTorch.",
    ),
]


def with_debug(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option --debug to a command. Only the help of the whole program lists it."""

    @wraps(command)
    def wrapped(debug: bool, **arguments: Any) -> None:
        command(**arguments)

    wrapped.__doc__ = help_text(command.__doc__ or "")
    return _with_parameters(wrapped, command, {"debug": (_HiddenDebug, False)})


def with_options(kind: type[Any], parameter: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command with an argument or an option for each field of the dataclass `kind`.

    The fields are annotated like parameters. The command gets an object with all values as its parameter `parameter`.
    """
    hints = get_type_hints(kind, include_extras=True)
    defaults = {field.name: Parameter.empty if field.default is MISSING else field.default for field in fields(kind)}
    options = {name: (hints[name], default) for name, default in defaults.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(**arguments: Any) -> None:
            value = kind(**{name: arguments.pop(name) for name in options})
            command(**arguments, **{parameter: value})

        return _with_parameters(wrapped, command, options, without=parameter)

    return decorate


def refuse_options(values: object, why: str, *, besides: Collection[str] = ()) -> None:
    """Refuse options that are set, except the options in `besides`.

    `values` maps names to values, or is the object that `with_options` passes.
    """
    if isinstance(values, Mapping):
        names = [name for name, value in values.items() if value]
    else:
        known = {field.name: field.default for field in fields(cast(Any, values))}
        hints = get_type_hints(type(values), include_extras=True)
        names = [
            _option_name(hints[name].__metadata__[0], name)
            for name, default in known.items()
            if getattr(values, name) != default
        ]
    if wrong := [name for name in names if name not in besides]:
        raise ConfigError(f"{why}; leave out {', '.join(wrong)}")


def _option_name(option: Any, field: str) -> str:
    """Return the name of an option. Until Typer has seen the command, it mistakes the first argument for a default."""
    first = option.default if isinstance(option.default, str) else ""
    return first if first.startswith("--") else f"--{field.replace('_', '-')}"


def _with_parameters(
    wrapped: Callable[..., None], command: Callable[..., None], added: Mapping[str, tuple[Any, Any]], without: str = ""
) -> Callable[..., None]:
    """Give `wrapped` the parameters of `command`, and the parameters `added` with their types and defaults."""
    before = [one for name, one in signature(command).parameters.items() if name != without]
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=one, default=value) for name, (one, value) in added.items()
    ]
    wrapped.__dict__["__signature__"] = signature(command).replace(parameters=[*before, *more])
    annotations = {name: kind for name, kind in command.__annotations__.items() if name != without}
    wrapped.__annotations__ = annotations | {name: kind for name, (kind, _) in added.items()}
    return wrapped


_BUNDLE = typer.Argument(metavar="BUNDLE", help="The folder of a trained model.")
BundleFolder = Annotated[Path, _BUNDLE]
BundleFolders = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="The folder of a trained model; A,B,… is an ensemble.")
]
OptionalBundleFolder = Annotated[Path | None, _BUNDLE]
DeviceOption = Annotated[str, typer.Option(help="Device: auto, cpu, cuda or mps.")]
PrecisionOption = Annotated[str, typer.Option(help="Type of the weights: auto, float32, int8, or bfloat16 on a GPU.")]
GlossaryOption = Annotated[
    Path | None, typer.Option(help="Required terms: lines of term, tab, translation.", rich_help_panel="Search")
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
    """Decorate a command with an option for every field of `config`, or only for the fields in `only`.

    The command gets the options that the user has set as a dict, its parameter `parameter`. `panels` groups the options
    on the help page; the rest are listed with the command's own options. With `variables`, each option can also be set
    by an environment variable with that prefix, and its help shows the default. With `section`, every field can be set
    by SECTION.KEY=VALUE among the arguments, as in a recipe.
    """
    fields_by_name = {field.name: field for field in fields(config)}
    known = {name: field for name, field in fields_by_name.items() if only is None or name in only}
    options = {name: _option(field, panels, variables) for name, field in known.items()}
    if section:
        options["settings"] = Annotated[list[str] | None, typer.Option("--set", hidden=True)]
    added = {name: (option, None) for name, option in options.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(**arguments: Any) -> None:
            table: dict[str, Any] = {}
            if section:  # another decorator's settings pass through
                table = apply_overrides({}, arguments.pop("settings", None) or []).get(section, {})
                refuse_unknown(table, fields_by_name, where=f"[{section}],")
            values = {name: arguments.pop(name) for name in known}
            chosen = {name: _parse(known[name], value) for name, value in values.items() if value is not None}
            command(**arguments, **{parameter: table | chosen})

        return _with_parameters(wrapped, command, added, without=parameter)

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
    """Decorate a command that takes search settings, which are passed as its parameter `decode`.

    The bundle provides the settings that the user leaves out. `options` are the settings that also have an option.
    """
    return with_config_options(DecodeConfig, "decode", only=options, panels={"Search": options}, section="decode")
