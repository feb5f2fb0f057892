"""`allyouneed average`: the mean of the weights of several bundles."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    bundles: Annotated[
        list[Path], typer.Argument(metavar="BUNDLE…", help="Folders of two or more models.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.", show_default=False)],
) -> None:
    """Make a model whose weights are the mean of those of several models of the same sizes and vocabulary.

    This pays for checkpoints of one run and for models trained further from the same one. Models that were trained
    from different random weights have nothing in common to average: translate with them as an ensemble.

    For example:

      allyouneed average runs/mine-1 runs/mine-2 --output runs/mine-mean
    """
    from ...run import average_bundles
    from .program import shell_command

    bundle = average_bundles(bundles, output)
    print(f"{output}: the mean of {len(bundles)} models, {bundle.model.parameter_count():,} parameters")
    print(f"  {shell_command('evaluate', output)} --source FILE --target FILE")
