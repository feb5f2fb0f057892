"""Replacing a run by a new one, which is trained in a folder beside it and replaces it only when it has finished."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..auto import Draft, preliminary_recipe
from ..config import Recipe
from ..data.prepared import PREPARED
from ..data.readers import local_paths
from ..errors import OutputError
from ..files import followed, locked, refusing_errors
from ..text.vocabulary import vocabulary_paths

# All files that a run, the demo and `check --save-baseline` write into the folder of a run.
WRITTEN = (
    "recipe.toml", "checkpoint.safetensors",
    "snapshots/[0-9]*.safetensors", "snapshots/.*.partial",
    "config.json", "weights.safetensors", "tokenizer.json", "tokenizer.target.json", "README.md", "SHA256SUMS",
    "data-report.json", "metrics.jsonl", "updates.jsonl", "samples.jsonl", "validation.jsonl", "environment.jsonl",
    "speed.json", "log.txt", "report.html", "test.json", "test-samples.txt", "tensorboard/events.*",
    "cross_attention.png", "baseline.json", ".*.partial", "pairs/*.jsonl", "pairs/*.json", "pairs/.*.partial",
    ".data.lock", "adaptation.json", "film.jsonl", "plans.jsonl", "used_seconds.txt",
    *(f"{folder}/{name}" for folder in ("data", ".data.partial") for name in PREPARED),
)  # fmt: skip
FOLDERS = {pattern.partition("/")[0] for pattern in WRITTEN if "/" in pattern}


def unrelated(folder: Path) -> list[Path]:
    """The files in the folder of a run that no run has written."""
    return [path for path in sorted(folder.rglob("*")) if not _is_written(path.relative_to(folder), path)]


def source_paths(recipe: Recipe | Draft) -> list[Path]:
    """The files and folders that a run reads."""
    plan = preliminary_recipe(recipe)
    data = plan.data
    corpora = [where for corpus in data.corpora() for where in (corpus.train, corpus.valid, corpus.test) if where]
    paths = [path for where in corpora for path in local_paths(where, folder=data.data_dir)]
    paths += [Path(data.data_dir, data.bpe_codes)] if data.bpe_codes else []
    paths += [Path(name) for name in (data.cache_dir, plan.train.init_from) if name]
    return paths + vocabulary_paths(data.tokenizer)


@contextmanager
def replaced(folder: Path, *, sources: Iterable[Path], resume: bool = False) -> Iterator[Path]:
    """The folder for a run that replaces the one in `folder` when the block ends without an exception.

    That is a folder within `.NAME.new` beside it, or `folder` itself if it does not exist. A run that was killed there
    is continued by `resume`, otherwise removed. Refuses a folder that is not a run, that contains files a run does not
    write, or one of the `sources`. The old run stays untouched until the end.
    """
    folder = followed(folder)
    growing = folder.parent / f".{folder.name}.new" / folder.name
    if not folder.exists() and not growing.exists():
        yield folder
        return
    _refuse(folder, sources)
    with locked(folder, what=str(folder)), refusing_errors(growing):
        if resume and not growing.exists():
            raise OutputError(
                f"there is no unfinished run that would replace {folder}; --overwrite alone starts one, --resume "
                "alone continues the run in that folder"
            )
        if not resume:
            remove_run(growing)
        growing.parent.mkdir(exist_ok=True)
        try:
            yield growing
            _swap(folder, growing)
        finally:
            if not (growing / "recipe.toml").exists():  # it never started
                remove_run(growing)
                with suppress(OSError):
                    growing.parent.rmdir()


def remove_run(folder: Path) -> None:
    """Remove the files of a run, and its folder unless it contains something else."""
    paths = sorted(folder.rglob("*"), reverse=True)
    for path in paths:
        if not _is_folder(path) and _is_written(path.relative_to(folder), path):
            path.unlink()
    for path in [*filter(_is_folder, paths), folder]:
        with suppress(OSError):  # it is not empty, or not there
            path.rmdir()


def _refuse(folder: Path, sources: Iterable[Path]) -> None:
    if folder.exists() and not (folder / "recipe.toml").is_file():
        raise OutputError(
            f"{folder} is not a run of allyouneed, so --overwrite does not remove it; name another folder"
        )
    if Path.cwd().is_relative_to(folder.resolve()):
        raise OutputError(f"{folder} is the present folder, which --overwrite would replace; begin from another folder")
    for path in sources:
        if path.resolve().is_relative_to(folder.resolve()):
            raise OutputError(
                f"{path} lies in {folder}, which --overwrite would replace, and the new run needs it; name another "
                "folder with --output"
            )
    if others := unrelated(folder):
        raise OutputError(
            f"{folder} contains files that no run wrote ({others[0].relative_to(folder)}), and --overwrite would "
            "remove them; move them away, or name another folder with --output"
        )


def _swap(folder: Path, growing: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    remove_run(old)
    if folder.exists():
        folder.rename(old)
    growing.rename(folder)
    remove_run(old)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_written(name: Path, path: Path) -> bool:
    if _is_folder(path):
        return name.as_posix() in FOLDERS or any(path.iterdir())  # the files in another folder are listed one by one
    return any(len(name.parts) == pattern.count("/") + 1 and name.match(pattern) for pattern in WRITTEN)
