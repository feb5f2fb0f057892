"""`allyouneed import`: a checkpoint of another program as a bundle."""

from pathlib import Path
from typing import Annotated

import typer


def import_command(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of the checkpoint.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="BUNDLE", help="The folder to write.")],
    source_language: Annotated[str, typer.Option(help="Language of the sources, as a BCP 47 tag.")] = "",
    target_language: Annotated[str, typer.Option(help="Language of the targets, likewise.")] = "",
) -> None:
    """Make a bundle of a checkpoint of another program, to translate with it, to train it further, to explain it.

    The kind of the checkpoint is recognized by its files. Nothing in them is run; what a bundle cannot express is
    refused with the reason.

    For example:

      allyouneed import opus-mt-en-it --output models/en-it

      allyouneed import mine --output models/mine --source-language en
    """
    from ..convert.imports import import_checkpoint

    bundle = import_checkpoint(checkpoint, output, source_language=source_language, target_language=target_language)
    print(f"{output}: {bundle.model.parameter_count():,} parameters, {len(bundle.source_tokenizer):,} tokens")
