"""Whole runs as data, shipped with the package: one TOML file each."""

from pathlib import Path

from ..errors import ConfigError

_HERE = Path(__file__).parent


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in _HERE.glob("*.toml"))


def recipe_path(name: str) -> Path:
    """The TOML file that `name` is the path of, or the shipped recipe of that name."""
    if Path(name).is_file():
        return Path(name)
    if name in recipe_names():
        return _HERE / f"{name}.toml"
    raise ConfigError(f"{name} is no recipe: give a file of pairs, a TOML file, or one of {', '.join(recipe_names())}")
