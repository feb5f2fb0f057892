"""The options that every command has, and those of the program itself."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from ...versions import versions
from .command import help_text


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
