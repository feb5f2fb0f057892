"""`allyouneed score`: the log-probabilities of existing translations."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from .model_options import BundleFolders, DeviceOption


def score(
    bundle: BundleFolders,
    source: Annotated[Path, typer.Option(help="The texts, a sentence a line.", show_default=False)],
    target: Annotated[Path, typer.Option(help="Their translations, a sentence a line.", show_default=False)],
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line, with the log-probability of every token.")
    ] = False,
    batch_size: Annotated[int | None, typer.Option(help="Pairs scored together.", show_default=False)] = None,
    device: DeviceOption = "auto",
) -> None:
    """Score existing translations: for each pair a line with its log-probability and the mean of its tokens, in nats.

    With --json, every token has its log-probability too.

    [bold]Examples[/bold]

      allyouneed score runs/mine --source test.en --target test.de

      allyouneed score runs/mine --source test.en --target test.de --json
    """
    from ..corpus.readers import pair_lines
    from ..errors import InputError
    from .screen import announce_pipes

    announce_pipes(source, target)
    pairs = pair_lines(source, target)

    from ..files import named_folders, to_json
    from ..translator import Translator

    translator = Translator.load(*named_folders(bundle), device=device, precision="float32", batch_size=batch_size)
    try:
        for scored in translator.score(pairs):
            mean = scored.log_probability / len(scored.log_probabilities)
            if as_json:
                row = {
                    "source": scored.source,
                    "target": scored.target,
                    "log_probability": _rounded(scored.log_probability),
                    "tokens": [
                        [piece, _rounded(value)]
                        for piece, value in zip(scored.pieces, scored.log_probabilities, strict=True)
                    ],
                }
                print(to_json(row))
            else:
                print(f"{scored.log_probability:.4f}\t{mean:.4f}")
    except InputError as error:
        raise InputError(f"{source} or {target}, line {error.line}: {error}") from error


def _rounded(log_probability: float) -> float | None:
    return round(log_probability, 6) if isfinite(log_probability) else None  # JSON has no infinity
