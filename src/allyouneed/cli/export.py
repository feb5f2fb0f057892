"""`allyouneed export`: a bundle in the format of another program."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """The formats; each has a file in `convert/`."""

    CTRANSLATE2 = "ctranslate2"


def export(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    to: Annotated[Format, typer.Option(help="The format to write.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", show_default=False)],
    sentences: Annotated[int, typer.Option(help="Random sentences for the comparison.", min=1)] = 50,
) -> None:
    """Convert a model to another program's format, and check that the translations stay the same.

    The other program translates random sentences; every token must be the most likely one of this model.
    Otherwise the output is removed.

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
            f"{to} translated {proof.sentences - proof.identical} of {proof.sentences} sentences differently from this "
            f"model (log-probabilities up to {proof.max_difference:.1e} apart), so {output} was removed"
        )
    print(
        f"{output}: {proof.identical} of {proof.sentences} sentences translated equally, all {proof.tokens:,} tokens; "
        f"log-probabilities at most {proof.max_difference:.0e} apart"
    )
