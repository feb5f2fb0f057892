"""`allyouneed check`: is this model sound?"""

import sys
from pathlib import Path
from typing import Annotated

import typer


def check(
    bundle: Annotated[Path | None, typer.Argument(help="The folder of a trained model.", show_default=False)] = None,
    config: Annotated[
        str | None,
        typer.Option(help="Check an untrained model of this recipe (a TOML file or a name).", show_default=False),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            help="Note what the model makes of the lines of this file, 100 at most, for later checks to compare.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Check that a model is sound: it does not see the future, padding changes nothing, it can learn, and more.

    The exit code is 1 if a check fails. What cannot be checked, for want of data, is said and does not count.

    [bold]Examples[/bold]

      allyouneed check runs/dates

      allyouneed check --config my.toml
    """
    from ..errors import InputError

    if (bundle is None) == (config is None):
        raise InputError("check needs a bundle's folder, or --config RECIPE, and not both")
    if save_baseline is not None and bundle is None:
        raise InputError("--save-baseline needs a bundle's folder: an untrained model has nothing worth remembering")

    from dataclasses import asdict

    from ..check import check_bundle, check_recipe
    from ..check import save_baseline as remember_in
    from ..config import Recipe
    from ..files import to_json
    from ..recipes import recipe_path

    if bundle is not None:
        if save_baseline is not None:
            from ..bundle import Bundle
            from ..corpus.readers import read_lines
            from .screen import console

            count = remember_in(Bundle.load(bundle), bundle, read_lines(save_baseline))
            console.print(f"remembered {count} translations in {bundle}")
        verdicts = check_bundle(bundle)
    else:
        assert config is not None
        verdicts = check_recipe(Recipe.read(recipe_path(config)))
    told = []
    for verdict in verdicts:
        told.append(verdict)
        if not as_json:
            mark = {True: "fine", False: "WRONG", None: "-"}[verdict.passed]
            print(f"{mark:<7}{verdict.check:<10}{verdict.explanation}", flush=True)
    wrong = [verdict.check for verdict in told if verdict.passed is False]
    if as_json:
        print(to_json({"sound": not wrong, "checks": [asdict(verdict) for verdict in told]}, indent=2))
    elif wrong:
        print(f"\nNot sound: {', '.join(wrong)}.")
    else:
        print("\nSound, as far as this could be checked.")
    if wrong:
        sys.exit(1)
