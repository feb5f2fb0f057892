"""`allyouneed train`: a recipe in, a bundle out."""

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a shipped recipe.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION.KEY=VALUE]…", help="Settings to change.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The folder to leave the model in; runs/RECIPE if not given.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that stands there.")] = False,
) -> None:
    """Train a model as a recipe says.

    Shipped recipes: dates, locales, multi30k-en-de, numbers, reverse, sort.

    [bold]Examples[/bold]

      allyouneed train dates train.seed=2

      allyouneed train my.toml --output runs/mine model.d_model=128 train.steps=2000

      allyouneed train my.toml --output runs/mine --resume
    """
    from ..config import Recipe
    from ..recipes import recipe_path
    from .screen import TrainingScreen, console

    path = recipe_path(recipe)
    settings = Recipe.read(path, overrides or ())
    place = output or Path("runs") / path.stem

    from ..train import fit
    from .place import clear

    if overwrite and not resume:
        clear(place)
    with TrainingScreen(steps=settings.train.steps) as screen:
        fit(settings, place, watch=screen, resume=resume)
    console.print(f"\nThe model is in {place}. Try it:  allyouneed translate {place} FILE")
