"""Replacing a run by a new one, which grows beside it and takes its place only when it has ended."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..config import Recipe
from ..corpus.readers import local_paths
from ..data.prepared import PREPARED
from ..errors import OutputError
from ..files import followed, locked, refusing_errors
from .auto import Draft

# All that a run, the demo and `check --save-baseline` write into the folder of a run.
WRITTEN = (
    "recipe.toml", "checkpoint.safetensors", "snapshots/[0-9]*.safetensors", "snapshots/.*.partial",
    "config.json", "weights.safetensors", "tokenizer.json", "tokenizer.target.json", "README.md", "data-report.json",
    "metrics.jsonl", "samples.jsonl", "validation.jsonl", "log.txt", "report.html", "tensorboard/events.*",
    "cross_attention.png", "baseline.json", ".*.partial", "pairs/*.jsonl", "pairs/.*.partial",
    *(f"{folder}/{name}" for folder in ("data", ".data.partial") for name in PREPARED),
)  # fmt: skip
FOLDERS = {pattern.partition("/")[0] for pattern in WRITTEN if "/" in pattern}


def unrelated(folder: Path) -> list[Path]:
    """What stands in the folder of a run and was not written by one."""
    return [path for path in sorted(folder.rglob("*")) if not _is_written(path.relative_to(folder), path)]


def source_paths(recipe: Recipe | Draft) -> list[Path]:
    """The files and folders that a run reads."""
    recipe = recipe.preliminary if isinstance(recipe, Draft) else recipe
    data = recipe.data
    corpora = [where for corpus in data.corpora() for where in (corpus.train, corpus.valid, corpus.test) if where]
    others = [Path(data.data_dir, data.bpe_codes)] * bool(data.bpe_codes) + [Path(data.cache_dir)] * bool(
        data.cache_dir
    )
    start = [Path(recipe.train.init_from)] * bool(recipe.train.init_from)
    return [*(path for where in corpora for path in local_paths(where, folder=data.data_dir)), *others, *start]


@contextmanager
def replaced(folder: Path, *, sources: Iterable[Path], resume: bool = False) -> Iterator[Path]:
    """Where a run is to grow that replaces the one in `folder` once the block has ended well.

    That is a folder within `.NAME.new` beside it; `folder` itself if nothing stands there. A run that was begun and
    killed there is gone on with by `resume`, else removed. Refuses a folder that is no run, that holds anything a run
    does not write, or one of the `sources`. What stands there stays untouched until the end.
    """
    folder = followed(folder)
    grows = folder.parent / f".{folder.name}.new" / folder.name
    if not folder.exists() and not grows.exists():
        yield folder
        return
    _refuse(folder, sources)
    with locked(folder, what=str(folder)), refusing_errors(grows):
        if resume and not grows.exists():
            raise OutputError(
                f"there is no run to go on with that would replace {folder}; --overwrite alone begins one, --resume "
                "alone goes on with the run that stands there"
            )
        if not resume:
            remove_run(grows)
        grows.parent.mkdir(exist_ok=True)
        try:
            yield grows
            _swap(folder, grows)
        finally:
            if not (grows / "recipe.toml").exists():  # it never began
                remove_run(grows)
                with suppress(OSError):
                    grows.parent.rmdir()


def remove_run(folder: Path) -> None:
    """Remove what a run wrote, and its folder unless it holds something else."""
    paths = sorted(folder.rglob("*"), reverse=True)
    for path in paths:
        if not _is_folder(path) and _is_written(path.relative_to(folder), path):
            path.unlink()
    for path in [*filter(_is_folder, paths), folder]:
        with suppress(OSError):  # it is not empty, or not there
            path.rmdir()


def _refuse(folder: Path, sources: Iterable[Path]) -> None:
    if folder.exists() and not (folder / "recipe.toml").is_file():
        raise OutputError(f"{folder} is no run of allyouneed, so --overwrite leaves it alone; name another place")
    for path in sources:
        if path.resolve().is_relative_to(folder.resolve()):
            raise OutputError(
                f"{path} lies in {folder}, which --overwrite would replace, and the new run needs it; name another "
                "place with --output"
            )
    if others := unrelated(folder):
        raise OutputError(
            f"{folder} holds what no run wrote ({others[0].relative_to(folder)}), and --overwrite would remove it; "
            "move it away, or name another place with --output"
        )


def _swap(folder: Path, grows: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    remove_run(old)
    if folder.exists():
        folder.rename(old)
    grows.rename(folder)
    remove_run(old)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_written(name: Path, path: Path) -> bool:
    if _is_folder(path):
        return name.as_posix() in FOLDERS or any(path.iterdir())  # of another one, what it holds is told
    return any(len(name.parts) == pattern.count("/") + 1 and name.match(pattern) for pattern in WRITTEN)
