"""Training pairs from memory: stored in the folder of the run, so that it can be resumed and repeated."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..auto import Draft, preliminary_recipe, with_data
from ..config import Recipe
from ..data.tabular import iterate_pairs
from ..errors import ConfigError, DataError
from ..files import locked, to_json, written_whole
from .resume import has_run, refuse_a_run


def with_pairs(recipe: Recipe | Draft, output: Path, parts: Mapping[str, Any], *, resume: bool) -> Recipe | Draft:
    """The recipe whose `data.train`, `data.valid` and `data.test` are the pairs of `parts`, stored in `output`/pairs.

    Refuses a part that the recipe names too and, where a run is resumed, pairs that are not those it started with.
    """
    data = preliminary_recipe(recipe).data
    files: dict[str, Any] = {part: str((output / "pairs" / f"{part}.jsonl").resolve()) for part in parts}
    for part, file in files.items():
        if getattr(data, part) not in ((), "", file):
            raise ConfigError(f"both {part} and data.{part}={getattr(data, part)!r} name pairs; leave one of them out")
    with locked(output, what=str(output)):
        resumes = resume and has_run(output)
        if not resumes:
            refuse_a_run(output)
        for part, pairs in parts.items():
            keys = data.columns or ("source", "target")
            lines = (
                to_json(dict(zip(keys, pair, strict=True))).encode() + b"\n"
                for pair in iterate_pairs(pairs, columns=data.columns, name=part)
            )
            (_require_same if resumes else _store)(Path(files[part]), lines, part)
    return with_data(recipe, files)


def _store(path: Path, lines: Iterator[bytes], _: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.writelines(lines)


def _require_same(path: Path, lines: Iterator[bytes], part: str) -> None:
    if not path.is_file():
        raise DataError(f"{part} has pairs, but this run did not start with pairs from memory: {path} does not exist")
    with path.open("rb") as file:
        for number, (before, now) in enumerate(zip_longest(file, lines), start=1):
            if before != now:
                raise DataError(
                    f"{part} differs at pair {number} from the pairs that this run started with; resume with the same "
                    "pairs, in the same order, or start another run"
                )
