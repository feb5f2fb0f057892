"""The argument of `train` and `prepare`: pairs or a recipe, and settings to change."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ...auto import Draft
    from ...config import Recipe


PairsOrRecipe = Annotated[
    str, typer.Argument(metavar="PAIRS|RECIPE", help="A file of pairs, a TOML file, or the name of a shipped recipe.")
]
SecondFileOrSettings = Annotated[
    list[str] | None,
    typer.Argument(metavar="SECTION.KEY=VALUE", help="The second of two aligned files, then settings to change."),
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        metavar="SOURCE,TARGET", help="The two columns of a table, by name or number. Default: by its first row."
    ),
]
SheetOption = Annotated[str, typer.Option(help="The sheet of a spreadsheet. Default: the first.")]


def recipe_from_arguments(
    what: str,
    more: list[str],
    *,
    languages: str = "",
    init_from: str = "",
    tokenizer: list[str] | None = None,
    columns: str = "",
    sheet: str = "",
    auto: bool = False,
    resumed: Path | None = None,
) -> "Recipe | Draft":
    """Read the recipe to train, or a draft for a file of pairs. With `auto`, a recipe also becomes a draft.

    `what` is a file of pairs, a TOML file or the name of a shipped recipe. `more` are overrides; the second of two
    aligned files comes before them. `resumed` is the folder of a run that may already exist.
    """
    from ...config import Recipe
    from ...config.settings import apply_overrides

    tables, overrides, is_pairs = _read_tables(what, more)
    tables = apply_overrides(tables, overrides)
    _set_data(tables, languages, columns, sheet, tokenizer)
    settings = tables.setdefault("train", {})
    if init_from and isinstance(settings, dict):
        settings["init_from"] = init_from  # not parsed as TOML: here "1" is a folder instead of a number
    initial = settings.get("init_from", "") if isinstance(settings, dict) else None
    if not isinstance(initial, str) or not (auto or is_pairs or initial):
        return Recipe.from_tables(tables)

    from ...auto import Draft
    from ...run.run_folder import has_run

    saved = Recipe.read(resumed / "recipe.toml") if resumed and has_run(resumed) else None
    draft = Draft.from_tables(tables, resumed=saved)
    return draft if auto or is_pairs else draft.recipe


def _read_tables(what: str, more: list[str]) -> tuple[dict[str, Any], list[str], bool]:
    """Return three things: tables of settings, the overrides among `more`, and True if `what` is a file of pairs."""
    from ...config.settings import read_tables
    from ...recipes import recipe_names, recipe_path

    if what.endswith(".toml") or what in recipe_names() or not (":" in what or Path(what).exists()):
        return read_tables(recipe_path(what)), more, False
    second = [word for word in more[:1] if "=" not in word]
    train = [what, *second] if second else what
    return {"data": {"train": train}}, more[len(second) :], True


def _set_data(tables: dict[str, Any], languages: str, columns: str, sheet: str, tokenizer: list[str] | None) -> None:
    """Put the data settings of options into the tables. If [data] is not a table, the recipe is refused later."""
    from ...config.language_tags import parse_pair

    names = list(parse_columns(columns))
    data = tables.setdefault("data", {})
    if not isinstance(data, dict):
        return
    if languages:
        data["source_language"], data["target_language"] = parse_pair(languages)
    if names:
        data["columns"] = names
    if sheet:
        data["sheet"] = sheet
    if tokenizer:
        data["tokenizer"] = tokenizer[0] if len(tokenizer) == 1 else tokenizer


def parse_columns(text: str | None) -> tuple[str, ...]:
    """Split the names of two columns, source and target, at a comma; () without a text. Refuses one or three names."""
    from ...errors import ConfigError

    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if text and len(names) != 2:
        raise ConfigError(f"--columns names two columns, source and target; got {text!r}")
    return names


def default_output(what: str) -> Path:
    """Choose the folder of a run: `runs/NAME`, where NAME is the file's or data set's name without extensions."""
    from ...errors import ConfigError

    data_set = re.match(r"hf://datasets/[^/]+/([^/@]+)", what)
    name = data_set[1] if data_set else Path(what).name.lstrip(".").partition(".")[0]
    if re.search(r"[*?\[]", name):
        raise ConfigError(f"{what} has no name for the folder of the run; name one with --output")
    return Path("runs") / name
