"""`allyouneed prepare`: clean and encode the pairs of a run, without training."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import with_options
from .recipe_argument import (
    ColumnsOption,
    PairsOrRecipe,
    SecondFileOrSettings,
    SheetOption,
    default_output,
    recipe_from_arguments,
)
from .screen import console

if TYPE_CHECKING:
    from ...auto import Draft
    from ...config import Recipe
    from ...run import RunPairs


@dataclass(frozen=True, kw_only=True, slots=True)
class PrepareOptions:
    """The options of `allyouneed prepare`."""

    what: PairsOrRecipe
    more: SecondFileOrSettings = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder of the run that will train on the pairs, which go into its folder data; "
            "default: runs/NAME.",
        ),
    ] = None
    columns: ColumnsOption = ""
    sheet: SheetOption = ""
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose the vocabulary from the pairs, as `train --auto` does.")
    ] = False
    ray: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Clean and encode on the Ray cluster at this address; local: start one here.",
        ),
    ] = ""
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False


@with_options(PrepareOptions, "options")
def prepare_command(options: PrepareOptions) -> None:
    """Read and clean the pairs of a run, learn their vocabulary and encode them, without training.

    `allyouneed train` with the same recipe and the same --output (or data.cache_dir) then starts at once. Pairs that
    are already prepared are not prepared again.

    You see how many pairs were read, used and dropped, and why, then the vocabulary and an example of its tokens.

    For example:
      allyouneed prepare train.en train.de --output runs/mine
      allyouneed prepare my.toml --output runs/mine clean.max_chars=500
      allyouneed prepare my.toml data.cache_dir=/shared/pairs --json
      allyouneed prepare my.toml data.cache_dir=/shared/pairs --ray 10.0.0.1:6379
    """
    recipe = recipe_from_arguments(
        options.what, options.more or [], columns=options.columns, sheet=options.sheet, auto=options.auto
    )

    from ...auto import preliminary_recipe
    from ...machine.files import to_json

    cache = preliminary_recipe(recipe).data.cache_dir
    path = _run_folder(options, cache)
    recipe, choices = _choose_settings(recipe, path)
    pairs, is_new = _prepare(recipe, path, options.ray)
    for note in (*choices, *pairs.notes):
        console.print(note)
    if options.as_json:
        print(to_json(_summary(pairs), indent=2))
        return
    print("\n".join(_lines(pairs)))
    where = f"--output {path}" if not cache else "data.cache_dir"
    console.print(
        f"The pairs are in {pairs.folder}{'' if is_new else ', and were there before'}; `allyouneed train` with the "
        f"same settings and {where} trains on them."
    )


def _run_folder(options: PrepareOptions, cache: str) -> Path:
    """Return the folder of the run. Refuses a named folder if the pairs go into the folder `cache`."""
    from ...errors import ConfigError
    from ...machine.files import followed

    if options.output and cache:
        raise ConfigError(f"data.cache_dir={cache} already says where the pairs go; leave out --output or that setting")
    return followed(options.output or default_output(options.what))


def _choose_settings(recipe: "Recipe | Draft", path: Path) -> "tuple[Recipe, list[str]]":
    """Return the recipe for reading the pairs, and the choices made for it if it is a draft."""
    import torch

    from ...auto import Draft, choose_from_pairs

    if not isinstance(recipe, Draft):
        return recipe, []
    draft = choose_from_pairs(recipe, path, device=torch.device("cpu"))
    return draft.preliminary, list(map(str, draft.chosen))


def _prepare(recipe: "Recipe", path: Path, ray: str) -> "tuple[RunPairs, bool]":
    """Prepare the pairs. Returns them, and False if they were already prepared."""
    from ...run import prepare_only
    from .progress_bar import ProgressBar

    stages: set[str] = set()
    with ProgressBar() as screen, redirect_stdout(sys.stderr):  # Ray prints when a process has ended

        def progress(stage: str, done: int, total: int | None) -> None:
            stages.add(stage)
            screen.on_prepare(stage, done, total)

        pairs = prepare_only(recipe, path, progress=progress, ray=ray)
    return pairs, bool(stages)


def _summary(pairs: "RunPairs") -> dict[str, Any]:
    data = pairs.data
    return {
        "folder": str(pairs.folder),
        "pairs": {"train": len(data.train), "valid": len(data.valid or ()), "test": len(data.test_pairs)},
        "tokens": {"source": len(data.train.source.ids), "target": len(data.train.target.ids)},
        "vocabulary": data.report.vocabulary,
        "fingerprint": data.fingerprint,
        "report": data.report.table(),
    }


def _lines(pairs: "RunPairs") -> list[str]:
    train = pairs.data.train
    return [
        pairs.data.report.text(),
        f"vocabulary: {' and '.join(f'{size:,}' for size in pairs.data.report.vocabulary)} tokens",
        f"tokens to train on: {len(train.source.ids):,} of sources, {len(train.target.ids):,} of targets",
    ]
