"""What a model is scored on: a test set that is named, or the pairs that its own run held out."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..config import Recipe
from ..corpus.lines import ARCHIVES
from ..corpus.pair import Pair
from ..corpus.readers import READERS, is_task, pair_lines, read_lines, read_pairs
from ..data.prepared import read_test_pairs
from ..errors import ConfigError, DataError

MADE_ON_THE_SPOT = 2_000  # test pairs of a task
TO_NAME_ONE = "name the test set by --source and --target, or by --pairs"


class EvaluationSet(NamedTuple):
    """Texts, and of each the translations that are right; `name` is what an error calls it."""

    name: str
    sources: list[str]
    references: list[list[str]]


def read_test_set(
    bundle: Path, source: Path | None, target: Path | None, pairs: Path | None, columns: Sequence[str]
) -> EvaluationSet:
    """The test set that options name; without any that of the run in the folder `bundle`."""
    if not (source or target or pairs):
        return as_test_set(str(bundle), held_out_pairs(bundle))
    if source and target and not pairs:
        return as_test_set(str(source), pair_lines(source, target))
    if not pairs or source or target:
        raise ConfigError(f"{TO_NAME_ONE}, or leave all of them out to score the test set of the run itself")
    kind = Path(pairs.stem).suffix if pairs.suffix in ARCHIVES else pairs.suffix
    if columns or (kind in READERS and kind not in (".tsv", ".txt")):
        return as_test_set(str(pairs), read_pairs(str(pairs), columns=columns))
    rows = [line.split("\t") for line in read_lines(pairs)]
    if not rows:
        raise DataError(f"{pairs} is empty; expected a source, a tab and its translation on every line")
    for number, row in enumerate(rows, start=1):
        if len(row) < 2:
            raise DataError(f"{pairs}, line {number} has no tab: expected a source, a tab and its translation")
    return EvaluationSet(str(pairs), [row[0] for row in rows], [row[1:] for row in rows])


def as_test_set(name: str, pairs: Sequence[Pair]) -> EvaluationSet:
    """Pairs as a test set with one reference each."""
    return EvaluationSet(name, [pair.source for pair in pairs], [[pair.target] for pair in pairs])


def held_out_pairs(run: Path) -> list[Pair]:
    """The pairs that a run keeps apart for a test, of a task made on the spot 2,000. Refuses where there are none."""
    if not (run / "recipe.toml").is_file():
        raise ConfigError(f"{run} does not hold the run that made it, and so no test set; {TO_NAME_ONE}")
    data = Recipe.read(run / "recipe.toml").data
    pairs = read_test_pairs(run / "data")
    for corpus in data.corpora():
        if is_task(corpus.test):
            pairs += read_pairs(corpus.test, limit=data.max_valid_samples or MADE_ON_THE_SPOT, seed=data.seed)
    if not pairs:
        elsewhere = f" in its folder (data.cache_dir is {data.cache_dir!r})" if data.cache_dir else ""
        raise ConfigError(f"{run} holds out no test set{elsewhere}; {TO_NAME_ONE}")
    return pairs
