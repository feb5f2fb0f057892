"""`allyouneed check`: is this model correct?"""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import OptionalBundleFolder

if TYPE_CHECKING:
    from ..check import CheckResult


def check(
    bundle: OptionalBundleFolder = None,
    config: Annotated[
        str | None, typer.Option(help="Check an untrained model of this recipe (a TOML file or a name).")
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            help="Translate the lines of this file (at most 100) and store the result; later checks compare with it."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Check that a model is correct: future tokens are masked, padding changes nothing, it can learn, and more.

    The exit code is 1 if a check fails. A check that lacks data is skipped, with a message.

    For example:
      allyouneed check runs/dates
      allyouneed check --config my.toml
    """
    from ...errors import InputError

    if (bundle is None) == (config is None):
        raise InputError("check needs either the folder of a bundle or --config RECIPE")
    if save_baseline is not None and bundle is None:
        raise InputError(
            "--save-baseline needs the folder of a bundle: the translations of an untrained model mean nothing"
        )
    if bundle is not None and save_baseline is not None:
        _save_baseline(bundle, save_baseline)
    failed = _print_results(_results(bundle, config), as_json=as_json)
    if failed:
        sys.exit(1)


def _save_baseline(bundle: Path, texts: Path) -> None:
    """Store the translations of a file's lines, for comparison in later checks."""
    from ...bundle import Bundle
    from ...errors import InputError
    from ...machine.files import is_same_file
    from ...text.lines import read_lines
    from ..check import save_baseline
    from ..check.data import BASELINE
    from .screen import console

    if is_same_file(texts, bundle / BASELINE):
        raise InputError(
            f"{texts} is the stored baseline itself: --save-baseline takes a file of texts to "
            "translate, one on each line; without it, the translations are compared with the baseline"
        )
    count = save_baseline(Bundle.load(bundle), bundle, read_lines(texts))
    console.print(f"stored {count} translations in {bundle}")


def _results(bundle: Path | None, config: str | None) -> "Iterable[CheckResult]":
    """Check a bundle, or an untrained model of a recipe, and yield each result."""
    from ...config import Recipe
    from ...recipes import recipe_path
    from ..check import check_bundle, check_recipe

    if bundle is not None:
        return check_bundle(bundle)
    assert config is not None
    return check_recipe(Recipe.read(recipe_path(config)))


def _print_results(results: "Iterable[CheckResult]", *, as_json: bool) -> list[str]:
    """Print each result as soon as it is known, or all as JSON. Returns the names of the failed checks."""
    from ...machine.files import to_json

    printed = []
    for result in results:
        printed.append(result)
        if not as_json:
            mark = {True: "passed", False: "FAILED", None: "skipped"}[result.passed]
            print(f"{mark:<9}{result.check:<15}{result.explanation}", flush=True)
    failed = [result.check for result in printed if result.passed is False]
    if as_json:
        print(to_json({"sound": not failed, "checks": [asdict(result) for result in printed]}, indent=2))
    elif failed:
        print(f"\nFailed: {', '.join(failed)}.")
    else:
        print("\nEvery check that could run passed.")
    return failed
