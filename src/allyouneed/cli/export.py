"""`allyouneed export`: a bundle as other programs read it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What a bundle can become; each is a file in `allyouneed/export/`."""

    CTRANSLATE2 = "ctranslate2"


def export(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    to: Annotated[Format, typer.Option(help="The program that is to read it.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.", show_default=False)],
    sentences: Annotated[int, typer.Option(help="Sentences of random words to prove it with.", min=1)] = 50,
) -> None:
    """Convert a model to another program's format, and prove that it still says the same.

    The other program translates random sentences; each word that it writes must be the one that our
    model finds likeliest there. A conversion that fails this leaves nothing.

    [bold]Example[/bold]

      allyouneed export runs/mine --to ctranslate2 --output mine-ct2
    """
    import shutil

    import torch

    from ..bundle import Bundle
    from ..convert.ctranslate2 import convert, prove, random_sources
    from ..errors import ExportError

    made = Bundle.load(bundle, device=torch.device("cpu"))
    convert(made, output)
    proof = prove(made, output, random_sources(made, sentences, seed=1))
    if proof.identical < proof.sentences:
        shutil.rmtree(output)
        raise ExportError(
            f"{to} translated {proof.sentences - proof.identical} of {proof.sentences} sentences otherwise than this "
            f"model (log-probabilities up to {proof.max_difference:.1e} apart), so {output} was removed"
        )
    print(
        f"{output}: {proof.identical} of {proof.sentences} sentences the same, all {proof.tokens:,} words; "
        f"log-probabilities at most {proof.max_difference:.0e} apart"
    )
