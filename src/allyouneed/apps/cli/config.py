"""`allyouneed config`: the meaning of the settings, and whole recipes with comments."""

import shutil
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...config.reference import SettingInfo


def config(
    what: Annotated[
        str | None, typer.Argument(metavar="KEY|SECTION|RECIPE", help="What to print. Default: every setting.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SECTION.KEY=VALUE", help="For a recipe: settings to change.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of recipes, for editors.")] = False,
) -> None:
    """Describe the settings of a recipe, or print a whole recipe as commented TOML.

    For a key or a section you see meaning, allowed values, default and the paper's value of each setting.

    For example:
      allyouneed config train.warmup
      allyouneed config decode
      allyouneed config dates train.steps=400 > my.toml
      allyouneed config --schema > recipe.schema.json
    """
    from ...config import Recipe
    from ...config.reference import SCHEMA, SECTIONS, commented_recipe, find_settings, refuse_misspelt
    from ...errors import ConfigError
    from ...recipes import recipe_names, recipe_path

    if schema:
        if what:
            raise ConfigError(f"--schema prints the schema of every recipe; leave out {what}")
        print(SCHEMA.read_text(encoding="utf-8"), end="")
        return
    names = SECTIONS if what is None else [what]
    settings = [setting for name in names for setting in find_settings(name)]
    if what and not settings:
        if what not in recipe_names() and not what.endswith(".toml"):
            refuse_misspelt(what)
        print(commented_recipe(Recipe.read(recipe_path(what), overrides or ())), end="")
        return
    if overrides:
        raise ConfigError(f"{overrides[0]} changes a setting of a recipe, but {what} is the name of a setting")
    _print_settings(settings)


def _print_settings(settings: "Iterable[SettingInfo]") -> None:
    width = min(shutil.get_terminal_size().columns, 100)
    for setting in settings:
        print(f"{setting.name} = {setting.default}")
        print(textwrap.fill(setting.describe(), width, initial_indent="    ", subsequent_indent="    "))
