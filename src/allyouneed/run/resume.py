"""Going on with a run: whether there is one, and whether it is still the same."""

from pathlib import Path

from ..config import Recipe
from ..errors import ConfigError, OutputError
from .replace import unrelated

# These may change between the parts of a run. Steps may too, if there are enough of them: the rate
# then follows the new length from here on.
MAY_CHANGE = {
    "train.steps",
    "train.patience",
    "train.threads",
    "train.device",
    "train.tensorboard",
}


def has_run(output: Path) -> bool:
    """Whether a run stands in this folder."""
    return (output / "recipe.toml").is_file()


def refuse_a_run(output: Path) -> None:
    """Refuse to begin a run where something stands already."""
    if has_run(output):
        raise OutputError(
            f"{output} holds a run already; go on with it by --resume, replace it by --overwrite, "
            "or name another place with --output"
        )
    # A process killed at its very beginning leaves no more than prepared pairs and a .partial file.
    if output.exists() and not (
        output.is_dir()
        and all(path.suffix == ".partial" or path.name in ("data", "pairs") for path in output.iterdir())
        and not unrelated(output)
    ):
        raise OutputError(
            f"{output} exists already, and a run would be mixed up with it; name another place with --output"
        )


def refuse_other_recipe(recipe: Recipe, output: Path) -> list[str]:
    """The settings that changed since the run began, each as "key was …, is …", if all of them may.

    Refuses, showing all, those that would make it another run.
    """
    then, now = Recipe.read(output / "recipe.toml").tables(), recipe.tables()
    changes = {
        f"{section}.{key}": f"{section}.{key} was {then[section].get(key)!r}, is {now[section].get(key)!r}"
        for section in now
        for key in dict.fromkeys([*then[section], *now[section]])
        if then[section].get(key) != now[section].get(key)
    }
    wrong = [text for key, text in changes.items() if key not in MAY_CHANGE and not key.startswith("decode.")]
    if wrong:
        raise ConfigError(
            f"{output} was begun with other settings: {'; '.join(wrong)}. A run goes on only with the settings it "
            f"began with ({', '.join(sorted(MAY_CHANGE))} and [decode] may change); begin another with --output"
        )
    return list(changes.values())
