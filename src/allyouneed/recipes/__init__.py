"""Whole runs as data, shipped with the package: one TOML file each; `paper/` has every row of Table 3."""

from pathlib import Path

from ..errors import ConfigError

_HERE = Path(__file__).parent


def recipe_names() -> list[str]:
    """The recipes that come with the package, without the rows of Table 3."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def paper_names() -> list[str]:
    """The rows of Table 3, recipes too."""
    return sorted(path.stem for path in (_HERE / "paper").glob("*.toml"))


def recipe_path(name: str) -> Path:
    """The TOML file that `name` is the path of, or the shipped recipe of that name."""
    if Path(name).is_file():
        return Path(name)
    if name in recipe_names():
        return _HERE / f"{name}.toml"
    if name in paper_names():
        return _HERE / "paper" / f"{name}.toml"
    raise ConfigError(
        f"{name} is no recipe: give a file of pairs, a TOML file, or one of {', '.join(recipe_names())}, "
        "or a row of Table 3, such as base"
    )
