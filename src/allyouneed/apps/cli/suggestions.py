"""`allyouneed suggestions`: what a server's users suggested, as pairs to train on."""

from pathlib import Path
from typing import Annotated

import typer

from .command import Command, with_debug

suggestions = typer.Typer(
    name="suggestions", help="Read the corrections that a server has stored.", no_args_is_help=True
)


@suggestions.command("export", cls=Command)
@with_debug
def export_suggestions(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="The file of allyouneed serve --suggestions.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of pairs, .tsv.", show_default=False)],
    source: Annotated[str, typer.Option("--source", help="Source language, if the store has several pairs.")] = "",
    target: Annotated[str, typer.Option("--target", help="Target language, likewise.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Write the latest suggestion for each text as a pair: text, tab, translation.

    Spaces and line breaks within a text become one space.

    For example:

      allyouneed suggestions export suggestions.jsonl --output corrections.tsv

      allyouneed adapt runs/en-it corrections.tsv --output runs/better
    """
    from ...files import check_output_file, write_whole
    from ..serve.suggestions import latest_suggestions
    from .screen import console

    check_output_file(output, what="the pairs", overwrite=overwrite, inputs=[store])
    pairs = [(one.source, one.target) for one in latest_suggestions(store, source, target)]
    write_whole(output, "".join(f"{' '.join(text.split())}\t{' '.join(better.split())}\n" for text, better in pairs))
    console.print(f"{output} has {len(pairs):,} pairs.")
