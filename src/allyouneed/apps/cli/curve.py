"""`allyouneed curve`: find out how many pairs are enough, and whether more would help."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import with_options
from .recipe_argument import ColumnsOption, default_output, parse_columns
from .screen import console

if TYPE_CHECKING:
    from ..reports.learning_curve import CurvePoint


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveOptions:
    """The options of `allyouneed curve`."""

    pairs: Annotated[str, typer.Argument(metavar="PAIRS", help="A file of pairs of any kind that train reads.")]
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SECTION.KEY=VALUE", help="Settings for all four trainings.")
    ] = None
    minutes: Annotated[
        float, typer.Option(min=0, help="Minutes for all four trainings together; 0: as their settings say.")
    ] = 10.0
    valid: Annotated[
        str, typer.Option(metavar="FILE", help="Pairs to score on. Default: a tenth of PAIRS, held out.")
    ] = ""
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder of the curve. Default: runs/NAME-curve.")
    ] = None
    columns: ColumnsOption = ""
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted curve.")] = False


@with_options(CurveOptions, "options")
def curve(options: CurveOptions) -> None:
    """Find out how many pairs are enough: train on an eighth, a quarter, half and all of them.

    Each training has a quarter of the time, and all are scored on the same other pairs. The last line predicts the
    score of twice as many pairs if the errors go on falling as they did; curve.svg plots the scores.

    For example:
      allyouneed curve pairs.tsv --minutes 20
      allyouneed curve pairs.tsv --valid valid.tsv --output runs/pairs-curve
      allyouneed curve pairs.tsv --minutes 20 --resume
    """
    from ...config.settings import apply_overrides
    from ...data.readers import read_pairs
    from ...errors import OutputError
    from ...machine.device import configure_process
    from ..reports.learning_curve import TITLES, learning_curve
    from .progress_bar import ProgressBar

    columns = parse_columns(options.columns)
    name = default_output(options.pairs)
    output = options.output or name.with_name(f"{name.name}-curve")
    if output.exists() and not options.resume:
        raise OutputError(f"{output} exists already; another folder is --output FOLDER").mended_by("--resume")
    pairs = read_pairs(options.pairs, columns=columns)
    valid = read_pairs(options.valid, columns=columns) if options.valid else []
    settings = apply_overrides({}, options.overrides or [])
    configure_process()
    points = []
    curve = learning_curve(
        pairs, output, minutes=options.minutes, valid=valid, settings=settings, resume=options.resume,
        callback=lambda: ProgressBar(samples=False, details=output / "log.txt"),
    )  # fmt: skip
    for point in curve:
        points.append(point)
        console.print(f"{point.pairs:,} pairs: {point.scores[point.metric]:.1f} % {TITLES[point.metric]}\n")
    _report(points, output)


def _report(points: "list[CurvePoint]", output: Path) -> None:
    """Print the table and the sentence, and save the picture."""
    from ..reports.learning_curve import TITLES, describe_curve, save_curve

    metric = points[-1].metric
    print(f"{'pairs':>10}{TITLES[metric]:>14}")
    for point in points:
        print(f"{point.pairs:>10,}{point.scores[metric]:>14.1f}")
    save_curve(points, output)
    print(f"\n{describe_curve(points)}\n\n{output / 'curve.svg'}")
