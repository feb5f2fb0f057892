"""The options that every command has, and those of the program itself."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from ..versions import versions


class Wishes:
    """What the call asks of every command."""

    debug = False


def _remember(debug: bool) -> None:
    Wishes.debug |= debug


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(versions())
        raise typer.Exit


Debug = Annotated[
    bool, typer.Option("--debug", callback=_remember, help="On an error, show where in the code it arose.")
]
Version = Annotated[
    bool,
    typer.Option("--version", "-V", is_eager=True, callback=_tell_version, help="Print the version and those below."),
]


def with_debug(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, which takes --debug too."""

    @wraps(command)
    def wrapped(debug: bool, **given: Any) -> None:
        command(**given)

    taken = signature(command)
    debug = Parameter("debug", Parameter.KEYWORD_ONLY, annotation=Debug, default=False)
    wrapped.__dict__["__signature__"] = taken.replace(parameters=[*taken.parameters.values(), debug])
    wrapped.__annotations__ = {**command.__annotations__, "debug": Debug}
    return wrapped
