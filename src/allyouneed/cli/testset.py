"""The test set of an evaluation: the files that options name, or the test pairs of the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..corpus.lines import ARCHIVES
from ..corpus.pair import Pair
from ..corpus.readers import READERS, pair_lines, read_lines, read_pairs
from ..errors import ConfigError, DataError
from ..evaluation.held_out import NAME_A_TEST_SET, held_out_pairs


class EvaluationSet(NamedTuple):
    """Texts with their reference translations; `name` is for messages."""

    name: str
    sources: list[str]
    references: list[list[str]]


def read_test_set(
    bundles: Sequence[Path], source: Path | None, target: Path | None, pairs: Path | None, columns: Sequence[str]
) -> EvaluationSet:
    """The test set that options name; without options, that of the runs in the folders `bundles`.

    Refuses runs that held out different pairs: a model may have learned from those that another held out.
    """
    if not (source or target or pairs):
        test_sets = [held_out_pairs(bundle) for bundle in bundles]
        for bundle, test_set in zip(bundles, test_sets, strict=True):
            if test_set != test_sets[0]:
                raise ConfigError(f"{bundles[0]} and {bundle} held out different test pairs; {NAME_A_TEST_SET}")
        return as_test_set(str(bundles[0]), test_sets[0])
    if source and target and not pairs:
        return as_test_set(str(source), pair_lines(source, target))
    if not pairs or source or target:
        raise ConfigError(f"{NAME_A_TEST_SET}, or leave them out to score the test set of the run")
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
