"""`allyouneed train`: pairs of text, or a recipe, in; a bundle out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..bundle import Bundle
    from ..config import Recipe
    from ..run import Draft


MOST_TESTED = 500  # test pairs translated at the end of a run


def train(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS|RECIPE",
            help="A file of pairs, a TOML file, or the name of a shipped recipe.",
            show_default=False,
        ),
    ],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SECTION.KEY=VALUE]…",
            help="Settings to change; first of all the second of two aligned files.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The folder to leave the model in; runs/NAME if not given.", show_default=False
        ),
    ] = None,
    init_from: Annotated[
        str,
        typer.Option(
            "--init-from", metavar="BUNDLE", help="Begin with this model and its vocabulary.", show_default=False
        ),
    ] = "",
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose what a recipe leaves out from the corpus, as for a file of pairs.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped; begin it if there is none.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that stands there.")] = False,
) -> None:
    """Train a model on pairs of text, or as a recipe says.

    For a file of pairs, what is not set is chosen from the corpus, and said with its reason.
    Shipped recipes: dates, en-it, locales, multi30k-en-de, multi30k-en-de-tok, numbers, reverse, sort,
    tatoeba-en-it. So is every row of Table 3, by name: base, A1, …, big (allyouneed paper).

    Ctrl-C (or SIGTERM) saves the run and leaves with code 130 (143); the same command with --resume goes on.

    [bold]Examples[/bold]

      allyouneed train pairs.tsv --output runs/mine

      allyouneed train train.en train.de --output runs/mine train.steps=2000

      allyouneed train dates train.seed=2

      allyouneed train my.toml --output runs/mine --resume

      allyouneed train special.tsv --init-from runs/mine --output runs/special
    """
    from contextlib import nullcontext

    from .program import shell_command
    from .screen import TrainingScreen, console

    place = output or Path("runs") / Path(what).name.partition(".")[0]
    recipe = _recipe(what, more or [], init_from=init_from, auto=auto)

    from ..device import configure_process
    from ..evaluation import fit
    from ..run import Draft, replaced, source_paths

    configure_process((recipe.preliminary if isinstance(recipe, Draft) else recipe).train.threads)
    sources = [*source_paths(recipe), Path(what)]
    making = replaced(place, sources=sources, resume=resume) if overwrite else nullcontext(place)
    with making as folder, TrainingScreen() as screen:
        if folder != place:
            screen.on_message("replace", f"{place} stays until this run, which grows in {folder}, has ended")
        bundle = fit(recipe, folder, callback=screen, resume=resume)
    console.print(f"\nThe model is in {place}, with {place}/report.html.")
    for line in (
        *(line for line in bundle.card.split("\n") if line.startswith("Validation ")),
        _tested(bundle, place),
    ):
        console.print(f"  {line}")
    console.print(f"Next:\n  {shell_command('translate', place)} FILE\n  {shell_command('evaluate', place)}")


def _recipe(what: str, more: list[str], *, init_from: str, auto: bool) -> "Recipe | Draft":
    from ..config import Recipe, read_recipe
    from ..recipes import recipe_names, recipe_path
    from ..settings import apply_overrides

    tables: dict[str, Any]
    if what.endswith(".toml") or what in recipe_names() or not _is_source(what):
        tables = read_recipe(recipe_path(what))
    else:
        files = [what, *(word for word in more[:1] if "=" not in word)]
        tables, more, auto = {"data": {"train": files if len(files) > 1 else what}}, more[len(files) - 1 :], True
    tables = apply_overrides(tables, more)
    settings = tables.setdefault("train", {})
    if init_from and isinstance(settings, dict):
        settings["init_from"] = init_from  # as it is: "1" is a folder here, no number
    begun = settings.get("init_from", "") if isinstance(settings, dict) else None
    if not isinstance(begun, str) or not (auto or begun):
        return Recipe.from_tables(tables)

    from ..run import Draft

    draft = Draft.from_tables(tables)
    return draft if auto else draft.recipe


def _tested(bundle: "Bundle", run: Path) -> str:
    """How well a finished model translates some of the test set of its run, in a line."""
    from ..errors import AllYouNeedError
    from ..evaluation import evaluate_greedily
    from .testset import held_out_pairs

    try:
        pairs = held_out_pairs(run)
        some = pairs[:: -(-len(pairs) // MOST_TESTED)]
        scores = evaluate_greedily(bundle, some).scores
    except AllYouNeedError as error:
        return f"No test scores: {error}."
    told = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    return f"Test {told}: greedy, {len(some):,} of {len(pairs):,} test pairs."


def _is_source(what: str) -> bool:
    return ":" in what or Path(what).exists()
