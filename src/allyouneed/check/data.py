"""Is what a model is measured on kept apart from what it was trained on?"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..config import DataConfig, Recipe
from ..corpus.data_report import DataReport
from ..corpus.pair import Pair
from ..corpus.readers import Where, is_task, local_paths, read_pairs
from ..data.filter import select_pairs
from ..data.read import read_part
from .result import CheckResult

MOST_OVERLAP = 0.01  # of the held-out pairs


def load_pairs(recipe: Recipe | None) -> tuple[list[Pair], list[Pair]]:
    """What a recipe trains on and what it holds out, as training selects them; nothing where a file is not at hand.

    Every corpus counts, and the share that is held out where none is named. A hub is not asked.
    """
    if recipe is None or not _is_at_hand(recipe.data):
        return [], []
    with tempfile.TemporaryDirectory() as folder:
        train, valid, test = (
            read_part(part, recipe.data, recipe.clean, Path(folder), DataReport())
            for part in ("train", "valid", "test")
        )
        chosen = select_pairs(recipe.data, recipe.clean, train, valid, test, DataReport())
        return list(train.pairs(chosen.train)), [*chosen.valid, *chosen.test, *_tests_of_tasks(recipe.data)]


def no_overlap(train: Sequence[Pair], held_out: Sequence[Pair]) -> CheckResult:
    """At most one in a hundred held-out pairs stands among those trained on."""
    if not train or not held_out:
        return CheckResult("overlap", None, "the data is not at hand" if not train else "no pair is held out")
    trained_on = set(train)
    seen = [pair for pair in held_out if pair in trained_on]
    share = f"{len(seen):,} of {len(held_out):,} held-out pairs ({100 * len(seen) / len(held_out):.2f} %)"
    if len(seen) > MOST_OVERLAP * len(held_out):
        return CheckResult(
            "overlap", False, f"{share} were trained on, such as {seen[0].source!r}: scores on them flatter."
        )
    return CheckResult("overlap", True, f"{share} were trained on")


def _tests_of_tasks(data: DataConfig) -> Iterator[Pair]:
    """Training leaves these alone: they are made when they are asked for."""
    for corpus in data.corpora():
        if is_task(corpus.test):
            yield from read_pairs(corpus.test, limit=data.max_valid_samples, seed=data.seed)


def _is_at_hand(data: DataConfig) -> bool:
    def here(where: Where) -> bool:
        files = local_paths(where, folder=data.data_dir)
        return is_task(where) or (bool(files) and all(file.is_file() for file in files))

    parts = [part for corpus in data.corpora() for part in (corpus.train, corpus.valid, corpus.test) if part]
    return bool(parts) and all(map(here, parts))
