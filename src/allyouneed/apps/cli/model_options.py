"""Arguments and options that commands with a trained model have in common."""

from pathlib import Path
from typing import Annotated

import typer

_BUNDLE = typer.Argument(metavar="BUNDLE", help="The folder of a trained model.", show_default=False)
BundleFolder = Annotated[Path, _BUNDLE]
BundleFolders = Annotated[
    str,
    typer.Argument(
        metavar="BUNDLE",
        help="The folder of a trained model; A,B,… is an ensemble.",
        show_default=False,
    ),
]
OptionalBundleFolder = Annotated[Path | None, _BUNDLE]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
PrecisionOption = Annotated[str, typer.Option(help="float32, int8 or auto.")]
CompiledOption = Annotated[
    bool | None,
    typer.Option(
        "--compiled/--no-compiled",
        help="Kernels of Numba. Default: in int8, if compiled.",
        show_default=False,
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(help="A file of lines: term, tab, translation.", show_default=False, rich_help_panel="Search"),
]
