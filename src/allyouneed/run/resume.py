"""Resuming a run: whether there is one, whether it is still running, and whether its settings are the same."""

from pathlib import Path

from ..config import Recipe
from ..errors import ConfigError, OutputError
from ..files import followed, locked
from .budget import USED_FILE
from .replace import unrelated

# These may change when a run is resumed. The number of steps, or the time budget, may not be less than those done or
# used; the learning-rate schedule then follows the new length. With a time budget the number of steps stays.
MAY_CHANGE = {
    "train.steps",
    "train.minutes",
    "train.patience",
    "train.threads",
    "train.workers",
    "train.device",
    "train.tensorboard",
    "data.source_language",
    "data.target_language",
    "data.license",
}


# What is in a folder before a run has started.
UNSTARTED = ("data", ".data.lock", "pairs", "speed.json", USED_FILE)


def has_run(output: Path) -> bool:
    """Whether this folder contains a run."""
    return (output / "recipe.toml").is_file()


def is_running(folder: Path) -> bool:
    """Whether another process trains in a folder: whether it holds the folder's lock."""
    folder = followed(folder)
    if not folder.with_name(f".{folder.name}.lock").exists():
        return False
    try:
        with locked(folder, what=str(folder)):
            return False
    except OutputError:
        return True


def refuse_a_run(output: Path, *, remedy: str = "overwrite it (--overwrite)") -> None:
    """Refuse to start a run in a folder that contains something; `remedy` is another way out than a new name."""
    if has_run(output):
        raise OutputError(f"{output} already contains a run; resume it, name another folder, or {remedy}").mended_by(
            "--resume"
        )
    # A process killed right after its start leaves only prepared pairs, the speed of the machine and a .partial file.
    if output.exists() and not (
        output.is_dir()
        and all(path.suffix == ".partial" or path.name in UNSTARTED for path in output.iterdir())
        and not unrelated(output)
    ):
        raise OutputError(
            f"{output} exists already, and a run would be mixed up with it; name another folder with --output"
        )


def refuse_other_recipe(recipe: Recipe, output: Path) -> list[str]:
    """The settings that changed since the run started, each as "key was …, is …".

    Refuses changes that would make it another run, and lists all of them.
    """
    then, now = Recipe.read(output / "recipe.toml").tables(), recipe.tables()
    changes = {
        f"{section}.{key}": f"{section}.{key} was {then[section].get(key)!r}, is {now[section].get(key)!r}"
        for section in now
        for key in dict.fromkeys([*then[section], *now[section]])
        if then[section].get(key) != now[section].get(key)
    }
    wrong = [text for key, text in changes.items() if key not in MAY_CHANGE and not key.startswith("decode.")]
    if "train.steps" in changes and then["train"]["minutes"] and now["train"]["minutes"]:
        wrong.append(f"{changes['train.steps']}, the length of the schedule that train.minutes compresses")
    if "train.minutes" in changes and not now["train"]["minutes"]:
        wrong.append(f"{changes['train.minutes']}, though a time budget cannot be taken away (give --minutes N)")
    if wrong:
        may_change = sorted(MAY_CHANGE - ({"train.steps"} if now["train"]["minutes"] else set()))
        raise ConfigError(
            f"{output} was started with other settings: {'; '.join(wrong)}. A run can be resumed only with "
            f"its own settings ({', '.join(may_change)} and [decode] may change); start another with --output"
        )
    return list(changes.values())
