"""Are the held-out pairs absent from the training pairs?"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...config import DataConfig, Recipe
from ...data.clean import read_part
from ...data.filter import select_pairs
from ...data.pairs import Pair
from ...data.readers import Where, is_task, local_paths, read_pairs
from ...data.report import DataReport
from .result import CheckResult

MAX_OVERLAP = 0.01  # of the held-out pairs


def load_pairs(recipe: Recipe | None) -> tuple[list[Pair], list[Pair]]:
    """The training pairs and the held-out pairs of a recipe, as training selects them; both empty if a file is missing.

    All corpora are read, and held-out shares are drawn as in training. Nothing is downloaded.
    """
    if recipe is None or not _is_local(recipe.data):
        return [], []
    with tempfile.TemporaryDirectory() as folder:
        train, valid, test = (
            read_part(part, recipe.data, recipe.clean, Path(folder), DataReport())
            for part in ("train", "valid", "test")
        )
        chosen = select_pairs(recipe.data, recipe.clean, train, valid, test, DataReport())
        return list(train.texts(chosen.train)), [*chosen.valid, *chosen.test, *_tests_of_tasks(recipe.data)]


def no_overlap(train: Sequence[Pair], held_out: Sequence[Pair]) -> CheckResult:
    """At most 1 % of the held-out pairs are training pairs."""
    if not train or not held_out:
        return CheckResult("overlap", None, "the data is not here" if not train else "no pairs are held out")
    trained_on = set(train)
    seen = [pair for pair in held_out if pair in trained_on]
    share = f"{len(seen):,} of {len(held_out):,} held-out pairs ({100 * len(seen) / len(held_out):.2f} %)"
    if len(seen) > MAX_OVERLAP * len(held_out):
        return CheckResult(
            "overlap", False, f"{share} are training pairs, such as {seen[0].source!r}: scores on them are too high."
        )
    return CheckResult("overlap", True, f"{share} are training pairs")


def _tests_of_tasks(data: DataConfig) -> Iterator[Pair]:
    """Test pairs of generated tasks, which training does not read."""
    for corpus in data.corpora():
        if is_task(corpus.test):
            yield from read_pairs(corpus.test, limit=data.max_valid_samples, seed=data.seed)


def _is_local(data: DataConfig) -> bool:
    def is_local(where: Where) -> bool:
        files = local_paths(where, folder=data.data_dir)
        return is_task(where) or (bool(files) and all(file.is_file() for file in files))

    parts = [part for corpus in data.corpora() for part in (corpus.train, corpus.valid, corpus.test) if part]
    return bool(parts) and all(map(is_local, parts))
