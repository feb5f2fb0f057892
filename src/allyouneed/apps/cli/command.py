"""The class of every command: its page of help in groups, settings among its arguments, and the option --debug."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ...versions import versions


class Command(TyperCommand):
    """A command whose options are listed in groups, and which may take `decode.KEY=VALUE` among its arguments.

    Typer's other layout draws a box around each group, which takes half of a screen.
    """

    def takes_settings(self) -> bool:
        """Whether settings of the search can be among the arguments."""
        return any(parameter.name == "settings" for parameter in self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hand settings to their hidden option; what follows `--` is a text or a file."""
        if self.takes_settings():
            end = args.index("--") if "--" in args else len(args)
            args = [f"--set={word}" if re.match(r"decode\..*=", word) else word for word in args[:end]] + args[end:]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the line "Usage"."""
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
    """A docstring with each paragraph on one line, and its examples as they are, without empty lines between them."""
    text, _, examples = inspect.cleandoc(docstring).partition("\nFor example:")
    text, examples = re.sub(r"(?<=\S)\n(?=\S)", " ", text), re.sub(r"\n\n+", "\n", examples)
    return f"{text}\n\b\nFor example:{examples}" if examples else text


class CommonOptions:
    """The options of a call that hold for every command."""

    debug = False


def _set_debug(debug: bool) -> None:
    CommonOptions.debug |= debug


def _print_version(requested: bool) -> None:
    if requested:
        print(versions())
        raise typer.Exit


_DEBUG = {"callback": _set_debug, "help": "After an error, print the traceback; any command takes it, too."}
Debug = Annotated[bool, typer.Option("--debug", **_DEBUG)]
_HiddenDebug = Annotated[bool, typer.Option("--debug", hidden=True, **_DEBUG)]
Version = Annotated[
    bool,
    typer.Option(
        "--version",
        "-V",
        is_eager=True,
        callback=_print_version,
        help="Print the version, and those of Python and PyTorch.",
    ),
]


def with_debug(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option --debug, which the help of the program names."""

    @wraps(command)
    def wrapped(debug: bool, **arguments: Any) -> None:
        command(**arguments)

    original = signature(command)
    debug = Parameter("debug", Parameter.KEYWORD_ONLY, annotation=_HiddenDebug, default=False)
    wrapped.__dict__["__signature__"] = original.replace(parameters=[*original.parameters.values(), debug])
    wrapped.__annotations__ = {**command.__annotations__, "debug": _HiddenDebug}
    wrapped.__doc__ = help_text(command.__doc__ or "")
    return wrapped
