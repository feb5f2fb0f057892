"""`allyouneed keys`: the API keys of a server, made, listed and removed."""

from pathlib import Path
from typing import Annotated

import typer

from .command import Command, with_debug

keys = typer.Typer(name="keys", help="Make, list and remove the API keys of a server.", no_args_is_help=True)

KeysFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file of keys.", show_default=False)]


@keys.command("add", cls=Command)
@with_debug
def add_entry(
    file: KeysFile,
    name: Annotated[str, typer.Option("--name", "-n", help="Whose key it is.", show_default=False)],
    requests_per_minute: Annotated[
        int, typer.Option("--requests-per-minute", help="Requests in any minute; 0: the limit of the server.")
    ] = 0,
    characters_per_day: Annotated[
        int, typer.Option("--characters-per-day", help="Characters in a day (UTC); 0: no limit.")
    ] = 0,
) -> None:
    """Make a key and write it to standard output.

    The file gets its SHA-256 alone, so the key cannot be shown again. A running server accepts it at once.

    For example:

      allyouneed keys add keys.json --name weblate --characters-per-day 1000000
    """
    from ..serve.keys import add_key

    key = add_key(file, name, requests_per_minute=requests_per_minute, characters_per_day=characters_per_day)
    print(key)
    typer.echo(f"{file} has the hash of this key; the key itself is stored nowhere, so keep it now.", err=True)


@keys.command("list", cls=Command)
@with_debug
def list_entries(file: KeysFile) -> None:
    """List the names and the limits of the keys.

    The keys themselves are not stored.

    For example:

      allyouneed keys list keys.json
    """
    from rich.console import Console
    from rich.table import Table

    from ..serve.keys import read_keys

    table = Table("name", "made", "requests a minute", "characters a day", box=None, header_style="")
    for key in read_keys(file):
        limits = (key.requests_per_minute, key.characters_per_day)
        table.add_row(key.name, key.created, *(f"{limit:,}" if limit else "–" for limit in limits))
    Console().print(table)


@keys.command("remove", cls=Command)
@with_debug
def remove_entry(
    file: KeysFile,
    name: Annotated[str, typer.Option("--name", "-n", help="Whose key it is.", show_default=False)],
) -> None:
    """Remove a key.

    A running server refuses it at once.

    For example:

      allyouneed keys remove keys.json --name weblate
    """
    from ..serve.keys import remove_key

    remove_key(file, name)
