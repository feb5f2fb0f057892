"""The test set of an evaluation: the files that options name, or the test pairs of the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...data.headings import heading_order
from ...data.pairs import Pair
from ...data.readers import READERS, pair_lines, read_pairs
from ...data.tabular import tsv_rows
from ...errors import ConfigError, DataError
from ...evaluation.held_out import NAME_A_TEST_SET, common_held_out_pairs, held_out_pairs
from ...text.lines import file_ending, require_memory_for


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
    kind = file_ending(pairs)
    if columns or (kind in READERS and kind not in (".tsv", ".txt")):
        return as_test_set(str(pairs), read_pairs(str(pairs), columns=columns))
    return _with_all_references(pairs)


def _with_all_references(file: Path) -> EvaluationSet:
    """Sources with one or several references, separated by tabs. Like `read_tsv` it follows a heading."""
    sources, references = list[str](), list[list[str]]()
    order = (0, 1)
    rows = require_memory_for(tsv_rows(file), lambda row: sum(map(len, row.cells)), str(file))
    for number, row in enumerate(rows):
        if isinstance(row.cells, str):
            raise DataError(f"{file}, line {row.line} {row.cells}")
        cells = [cell.strip() for cell in row.cells]
        if len(cells) < 2:
            raise DataError(f"{file}, line {row.line} has no tab: expected a source, a tab and its translation")
        if not number and (heading := heading_order(cells[:2], f"{file}, line {row.line}")):
            order = heading
        else:
            source, target = order
            sources.append(cells[source])
            references.append([cells[target], *filter(None, cells[2:])])
    if not sources:
        raise DataError(f"{file} is empty; expected a source, a tab and its translation on every line")
    return EvaluationSet(str(file), sources, references)


def as_test_set(name: str, pairs: Sequence[Pair]) -> EvaluationSet:
    """Pairs as a test set with one reference each."""
    return EvaluationSet(name, [pair.source for pair in pairs], [[pair.target] for pair in pairs])
