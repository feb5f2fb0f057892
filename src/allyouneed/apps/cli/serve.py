"""`allyouneed serve`: serve translations over HTTP; `keys` and `suggestions`: manage the files of a server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...config.language_tags import language_name
from ...errors import AllYouNeedError, MissingExtraError
from ...machine.interpreter import uncollected
from ..serve.options import ServeConfig
from .command import Command, SearchSettings, with_config_options, with_debug, with_search

SERVE_PANELS = {
    "Models": ("max_loaded_memory", "device", "precision", "workers", "reload_every"),
    "Access and limits": (
        "keys", "key_optional", "requests_per_minute", "allowed_hosts", "cors_origins", "max_queue", "request_timeout",
        "max_texts", "max_characters", "max_file",
    ),
    "Kept files": ("suggestions", "glossaries", "log_text"),
}  # fmt: skip


@with_config_options(ServeConfig, "options", panels=SERVE_PANELS, variables="ALLYOUNEED_SERVE_")
@with_search()
def serve(
    bundles: Annotated[
        list[str],
        typer.Argument(metavar="BUNDLE", help="Folders of models; BUNDLE=en-it names languages; A,B is an ensemble."),
    ],
    *,
    options: dict[str, Any],
    decode: SearchSettings,
) -> None:
    """Serve models over HTTP, until Ctrl-C or SIGTERM.

    Each option is also an environment variable: ALLYOUNEED_SERVE_PORT is --port.

    For example:
      allyouneed serve runs/en-it
      allyouneed serve runs/en-it runs/small runs/dates
    """
    serve_bundles(bundles, ServeConfig(**options), decode)


def serve_bundles(
    bundles: Sequence[str],
    config: ServeConfig,
    decode: SearchSettings | None = None,
    *,
    on_ready: Callable[[str], object] | None = None,
) -> None:
    """Serve models until Ctrl-C or SIGTERM. `on_ready` is called with the address once the server answers there."""
    from .screen import console

    with uncollected():
        try:
            from ..serve.access import exposure_warnings
            from ..serve.app import create_app
            from ..serve.server import listen, run_server, url
        except ImportError as error:
            if isinstance(error, AllYouNeedError):
                raise
            raise MissingExtraError("allyouneed serve", "serve") from error
        app = create_app(bundles, config, decode=decode)
    listener = listen(config.host, config.port)
    pairs = ", ".join(
        f"{language_name(source)} → {language_name(target)} ({source}-{target})"
        for source, target in app.state.server.models.pairs()
    )

    def announce() -> None:
        console.print(f"Serving {pairs}\nat {url(listener)}; Ctrl-C stops it.")
        for warning in exposure_warnings(config):
            console.print(f"Warning: {warning}.")
        if on_ready:
            on_ready(url(listener))

    run_server(app, listener, config, on_ready=announce)


suggestions = typer.Typer(
    name="suggestions", help="Export the corrections that a server has stored.", no_args_is_help=True
)


@suggestions.command("export", cls=Command)
@with_debug
def export_suggestions(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file of allyouneed serve --suggestions.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of pairs, .tsv.")],
    source: Annotated[str, typer.Option(help="Source language, if the store has several pairs.")] = "",
    target: Annotated[str, typer.Option(help="Target language, if the store has several pairs.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Write the latest suggestion for each text as a pair: text, tab, translation.

    Spaces and line breaks within a text become one space.

    For example:
      allyouneed suggestions export suggestions.jsonl --output corrections.tsv
      allyouneed adapt runs/en-it corrections.tsv --output runs/better
    """
    from ...machine.files import check_output_file, write_whole
    from ..serve.suggestions import latest_suggestions
    from .screen import console

    check_output_file(output, what="the pairs", overwrite=overwrite, inputs=[store])
    pairs = [(one.source, one.target) for one in latest_suggestions(store, source, target)]
    write_whole(output, "".join(f"{' '.join(text.split())}\t{' '.join(better.split())}\n" for text, better in pairs))
    console.print(f"{output} has {len(pairs):,} pairs.")


keys = typer.Typer(name="keys", help="Make, list and remove the API keys of a server.", no_args_is_help=True)

KeysFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file of keys.")]


@keys.command("add", cls=Command)
@with_debug
def add_entry(
    file: KeysFile,
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the client.")],
    requests_per_minute: Annotated[int, typer.Option(help="Requests per minute; 0: the server's limit.")] = 0,
    characters_per_day: Annotated[int, typer.Option(help="Characters per day (UTC); 0: no limit.")] = 0,
) -> None:
    """Make a key and write it to standard output.

    The file stores only the key's SHA-256, so the key cannot be shown again. A running server accepts it at once.

    For example:
      allyouneed keys add keys.json --name weblate --characters-per-day 1000000
    """
    from ..serve.keys import add_key

    key = add_key(file, name, requests_per_minute=requests_per_minute, characters_per_day=characters_per_day)
    print(key)
    typer.echo(f"{file} has only the hash of this key: copy the key now.", err=True)


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
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the client.")],
) -> None:
    """Remove a key.

    A running server refuses it at once.

    For example:
      allyouneed keys remove keys.json --name weblate
    """
    from ..serve.keys import remove_key

    remove_key(file, name)
