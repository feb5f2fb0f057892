"""The test set of an evaluation: the files that options name, or the test pairs of the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..corpus.lines import ARCHIVES
from ..corpus.pair import Pair
from ..corpus.readers import READERS, pair_lines, read_lines, read_pairs
from ..errors import ConfigError, DataError
from ..evaluation.held_out import NAME_A_TEST_SET, common_held_out_pairs, held_out_pairs


class EvaluationSet(NamedTuple):
    """Texts with their reference translations; `name` is for messages."""

    name: str
    sources: list[str]
    references: list[list[str]]


def read_test_set(
    models: Sequence[Sequence[Path]],
    source: Path | None,
    target: Path | None,
    pairs: Path | None,
    columns: Sequence[str],
) -> EvaluationSet:
    """The test set that options name; without options, what the runs of the models held out.

    A model is one bundle, or several that translate together, whose runs must have held out the same pairs: one may
    have learned from those of another. Of two models that are compared, the pairs are those that both held out.
    """
    if not (source or target or pairs):
        for first, *others in models:
            for other in others:
                if held_out_pairs(other) != held_out_pairs(first):
                    raise ConfigError(f"{first} and {other} held out different test pairs; {NAME_A_TEST_SET}")
        runs = [first for first, *_ in models]
        return as_test_set(str(runs[0]), common_held_out_pairs(runs) if len(runs) > 1 else held_out_pairs(runs[0]))
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
