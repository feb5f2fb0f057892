"""Recipes that come with the package: one TOML file for each run, and in `paper/` one for each row of Table 3."""

from difflib import get_close_matches
from pathlib import Path

from ..config.suggest import near_path
from ..errors import ConfigError

_HERE = Path(__file__).parent


def recipe_names() -> list[str]:
    """List the recipes that come with the package, without the rows of Table 3."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def paper_names() -> list[str]:
    """List the recipes for the rows of Table 3."""
    return sorted(path.stem for path in (_HERE / "paper").glob("*.toml"))


def recipe_path(name: str | Path) -> Path:
    """Find a TOML file by its path, or a shipped recipe by its name.

    Refuses a file that does not exist, and an unknown name; the message lists recipes with similar names.
    """
    if Path(name).is_file():
        return Path(name)
    if Path(name).exists() and not Path(name).is_dir():
        raise ConfigError(f"{name} is a pipe or a device; a recipe must be a regular file")
    name = str(name)
    if name in recipe_names():
        return _HERE / f"{name}.toml"
    if name in paper_names():
        return _HERE / "paper" / f"{name}.toml"
    if Path(name).suffix or len(Path(name).parts) > 1:
        raise ConfigError(
            f"{name} does not exist; expected a file of pairs, a TOML file or the name of a recipe{near_path(name)}"
        )
    near = get_close_matches(name, [*recipe_names(), *paper_names()], cutoff=0.7)
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise ConfigError(
        f"{name} is not a recipe{meant}: give a file of pairs, a TOML file, or one of {', '.join(recipe_names())}, "
        "or a row of Table 3, such as base"
    )
