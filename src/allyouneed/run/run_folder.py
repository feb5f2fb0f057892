"""The folder of a run: find out whether it contains a run, running or resumable, and replace it.

A new run that replaces another is trained in a folder next to it, and takes its place only when it has finished.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from ..bundle import ENSEMBLE_FILE
from ..config import Recipe
from ..data.prepared_files import PREPARED
from ..data.readers import local_paths
from ..errors import AllYouNeedError, ConfigError, OutputError
from ..machine.files import followed, locked, refusing_errors, unused
from ..text.vocabulary_files import vocabulary_paths
from .budget import USED_FILE
from .checkpoint import CHECKPOINT_FILE, read_state

# Settings that may change when a run is resumed. The number of steps, or the time budget, must not be less than is
# already done or used. The learning-rate schedule then follows the new length. With a time budget the number of steps
# stays.
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


# Files that a folder may have before a run has started.
UNSTARTED = ("data", ".data.lock", "pairs", "speed.json", USED_FILE)


class Stage(Enum):
    """How far the run in a folder has come when a process opens it."""

    NEW = "there is none yet"
    BEGUN = "it was killed before its first checkpoint"
    STOPPED = "it has a checkpoint, and updates left"
    FINISHED = "nothing is left to do"

    @property
    def has_checkpoint(self) -> bool:
        """True if the run continues with the weights of a checkpoint."""
        return self in (Stage.STOPPED, Stage.FINISHED)


def enter_run(recipe: Recipe, output: Path) -> tuple[Stage, list[str]]:
    """Return how far a resumed run has come, and the settings that have changed since it started.

    Refuses a different recipe, and fewer updates or minutes than the run has already had.
    """
    changes = refuse_other_recipe(recipe, output)
    if not (output / CHECKPOINT_FILE).exists():
        return Stage.BEGUN, changes
    state = read_state(output / CHECKPOINT_FILE)
    state.continue_with(recipe.train)
    return Stage.FINISHED if state.finished else Stage.STOPPED, changes


def has_run(output: Path) -> bool:
    """Return True if this folder contains a run."""
    return (output / "recipe.toml").is_file()


def has_unfinished_run(output: Path) -> bool:
    """Return True if this folder contains a run that has a checkpoint but is not finished."""
    checkpoint = output / CHECKPOINT_FILE
    return has_run(output) and checkpoint.is_file() and not read_state(checkpoint).finished


def is_running(folder: Path) -> bool:
    """Return True if another process trains in a folder, which it then has locked."""
    folder = followed(folder)
    if not folder.with_name(f".{folder.name}.lock").exists():
        return False
    try:
        with locked(folder, what=str(folder)):
            return False
    except OutputError:
        return True


def refuse_a_run(
    output: Path, *, resume: Callable[[], object] | None = None, remedy: str = "overwrite it (--overwrite)"
) -> None:
    """Refuse to start a run in a folder that is not empty. `remedy` says what else the user may do.

    `resume` tries to resume the run. If it succeeds, the command in the error message resumes the run; otherwise the
    command names another folder.
    """
    if has_run(output):
        options = ("--resume",) if resume and _succeeds(resume) else ("--output", str(unused(output)))
        raise OutputError(f"{output} already contains a run; resume it, name another folder, or {remedy}").mended_by(
            *options
        )
    # A process killed right after its start only leaves prepared pairs, the speed of the machine and a .partial file.
    if output.exists() and not (
        output.is_dir()
        and all(path.suffix == ".partial" or path.name in UNSTARTED for path in output.iterdir())
        and not unrelated(output)
    ):
        raise OutputError(f"{output} already exists and is not a run; name another folder with --output").mended_by(
            "--output", str(unused(output))
        )


def _succeeds(act: Callable[[], object]) -> bool:
    try:
        act()
    except AllYouNeedError:
        return False
    return True


def refuse_other_recipe(recipe: Recipe, output: Path) -> list[str]:
    """List the settings that changed since the run started, each as "key was …, is …".

    Refuses changes that would make it a different run. The message lists all of them.
    """
    then = Recipe.read(output / "recipe.toml").tables()
    now = recipe.tables()
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
        ).mended_by("--output", str(unused(output)))
    return list(changes.values())


# All files that a run, the demo and `check --save-baseline` write to the folder of a run.
_OF_A_MODEL = (
    "recipe.toml", "checkpoint.safetensors",
    "snapshots/[0-9]*.safetensors", "snapshots/.*.partial",
    "config.json", "weights.safetensors", "tokenizer.json", "tokenizer.target.json", "README.md", "SHA256SUMS",
    "data-report.json", "metrics.jsonl", "updates.jsonl", "samples.jsonl", "validation.jsonl", "environment.jsonl",
    "speed.json", "log.txt", "report.html", "test.json", "test-samples.txt", "tensorboard/events.*",
    "cross_attention.png", "baseline.json", ".*.partial", "pairs/*.jsonl", "pairs/*.json", "pairs/.*.partial",
    ".data.lock", "adaptation.json", "film.jsonl", "plans.jsonl", "used_seconds.txt",
    *(f"{folder}/{name}" for folder in ("data", ".data.partial") for name in PREPARED),
)  # fmt: skip
WRITTEN = (*_OF_A_MODEL, ENSEMBLE_FILE, *(f"models/*/{pattern}" for pattern in _OF_A_MODEL))
FOLDERS = {pattern.partition("/")[0] for pattern in WRITTEN if "/" in pattern}


def unrelated(folder: Path) -> list[Path]:
    """List the files in the folder of a run that no run has written."""
    return [path for path in sorted(folder.rglob("*")) if not _is_written(path.relative_to(folder), path)]


def source_paths(recipe: Recipe) -> list[Path]:
    """List the files and folders that a run reads."""
    data = recipe.data
    corpora = [where for corpus in data.corpora() for where in (corpus.train, corpus.valid, corpus.test) if where]
    paths = [path for where in corpora for path in local_paths(where, folder=data.data_dir)]
    paths += [Path(data.data_dir, data.bpe_codes)] if data.bpe_codes else []
    paths += [Path(name) for name in (data.cache_dir, recipe.train.init_from) if name]
    return paths + vocabulary_paths(data.tokenizer)


@contextmanager
def replaced(folder: Path, *, sources: Iterable[Path], resume: bool = False) -> Iterator[Path]:
    """Yield the folder for a run that replaces the run in `folder` if the `with` block succeeds.

    This is a folder in `.NAME.new` next to `folder`, or `folder` itself if it does not exist. With `resume`, a killed
    run in either folder continues; otherwise it is removed. Files that no run writes, such as an explanation, are moved
    to the new folder. Refuses a folder that is not a run, or that contains a file in `sources`. The old run stays
    untouched until the end.
    """
    folder = followed(folder)
    growing = folder.parent / f".{folder.name}.new" / folder.name
    if not growing.exists() and (not folder.exists() or (resume and has_unfinished_run(folder))):
        yield folder
        return
    _refuse(folder, sources)
    with locked(folder, what=str(folder)), refusing_errors(growing):
        if resume and not growing.exists():
            raise OutputError(
                f"no unfinished run would replace {folder}; --overwrite without --resume starts one, --resume "
                "without --overwrite continues the run in that folder"
            )
        if not resume:
            remove_run(growing)
        growing.parent.mkdir(exist_ok=True)
        try:
            yield growing
            _swap(folder, growing)
        finally:
            if not (growing / "recipe.toml").exists():  # the run never started
                remove_run(growing)
                with suppress(OSError):
                    growing.parent.rmdir()


def remove_run(folder: Path) -> None:
    """Remove the files of a run, and its folder unless it contains other files."""
    paths = sorted(folder.rglob("*"), reverse=True)
    for path in paths:
        if not _is_folder(path) and _is_written(path.relative_to(folder), path):
            path.unlink()
    for path in [*filter(_is_folder, paths), folder]:
        with suppress(OSError):  # the folder has other files, or does not exist
            path.rmdir()


def _refuse(folder: Path, sources: Iterable[Path]) -> None:
    if folder.exists() and not (folder / "recipe.toml").is_file():
        raise OutputError(
            f"{folder} is not a run of allyouneed, so --overwrite does not remove it; name another folder"
        )
    if Path.cwd().is_relative_to(folder.resolve()):
        raise OutputError(f"{folder} is the current folder, which --overwrite would replace; start from another folder")
    for path in sources:
        if path.resolve().is_relative_to(folder.resolve()):
            raise OutputError(
                f"{path} is in {folder}, which --overwrite would replace, but the new run needs it; name another "
                "folder with --output"
            )


def _swap(folder: Path, growing: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    remove_run(old)
    if folder.exists():
        for path in unrelated(folder):
            place = growing / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
        folder.rename(old)
    growing.rename(folder)
    remove_run(old)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_written(name: Path, path: Path) -> bool:
    if _is_folder(path):
        return name.as_posix() in FOLDERS or any(path.iterdir())  # files in other folders are listed themselves
    return any(len(name.parts) == pattern.count("/") + 1 and name.match(pattern) for pattern in WRITTEN)
