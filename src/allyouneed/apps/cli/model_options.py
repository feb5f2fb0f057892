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
        help="The folder of a trained model; several, separated by commas, are an ensemble.",
        show_default=False,
    ),
]
OptionalBundleFolder = Annotated[Path | None, _BUNDLE]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
PrecisionOption = Annotated[
    str, typer.Option(help="Precision: float32, int8, or auto, which is int8 for a large model on an x86 CPU.")
]
CompiledOption = Annotated[
    bool | None,
    typer.Option(
        "--compiled/--no-compiled",
        help="Kernels compiled by Numba (extra \\[fast]), half a minute the first time on a machine. "
        "Default: in int8, where they have been compiled.",
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(help="A file of lines: term, tab, translation.", show_default=False, rich_help_panel="Constraints"),
]
