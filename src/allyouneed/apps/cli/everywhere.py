"""The options that every command has, and those of the program itself."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from ...versions import versions
from .help_layout import unwrap_paragraphs


class CommonOptions:
    """The options of a call that hold for every command."""

    debug = False


def _set_debug(debug: bool) -> None:
    CommonOptions.debug |= debug


def _print_version(requested: bool) -> None:
    if requested:
        print(versions())
        raise typer.Exit


Debug = Annotated[bool, typer.Option("--debug", callback=_set_debug, help="After an error, print the traceback.")]
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
    """The same command with the option --debug, and its help in unwrapped paragraphs."""

    @wraps(command)
    def wrapped(debug: bool, **arguments: Any) -> None:
        command(**arguments)

    original = signature(command)
    debug = Parameter("debug", Parameter.KEYWORD_ONLY, annotation=Debug, default=False)
    wrapped.__dict__["__signature__"] = original.replace(parameters=[*original.parameters.values(), debug])
    wrapped.__annotations__ = {**command.__annotations__, "debug": Debug}
    wrapped.__doc__ = unwrap_paragraphs(command.__doc__ or "")
    return wrapped
