"""Pairs from memory: an iterable of pairs or rows, a polars or pandas frame, a data set of Hugging Face."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import DataError
from .pair import Fault, Pair
from .tabular import pair_names, row_to_pair


def iterate_pairs(pairs: Any, *, columns: Sequence[str] = (), name: str = "pairs") -> Iterator[Pair]:
    """The pairs of an iterable or a frame, one after another; `name` is what they are in error messages.

    A row is a (source, target) pair of strings, or a mapping such as a row of a data set. `columns` names the source
    and the target of a frame or a mapping; without it, these are `source` and `target` (or `src`, `tgt`, `trg`), the
    two languages of its `translation`, or its only two; the first mapping decides for all. Refuses a string, a mapping
    of splits, and, by its number, a row that is not a pair.
    """
    for number, row in enumerate(_rows(pairs, name), start=1):
        if isinstance(row, Mapping):
            columns = columns or pair_names(row)
            pair = row_to_pair(row, columns, number)
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 2:
            pair = row_to_pair({"source": row[0], "target": row[1]}, ("source", "target"), number)
        else:
            pair = Fault(number, f"must be (source, target), two strings; got {row!r:.60}")
        if isinstance(pair, Fault):
            raise DataError(f"{name}, row {number} {pair.reason}")
        yield pair


def _rows(pairs: Any, name: str) -> Iterable[Any]:
    if hasattr(pairs, "collect_schema") and hasattr(pairs, "collect"):  # a lazy frame of polars
        pairs = pairs.collect()
    if hasattr(pairs, "iter_rows"):  # a frame of polars
        return pairs.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(pairs, "itertuples"):  # a frame of pandas; iterating over it would give the names of its columns
        names = list(pairs.columns)
        return (dict(zip(names, row, strict=True)) for row in pairs.itertuples(index=False, name=None))
    if isinstance(pairs, Mapping):
        raise DataError(f"{name} is a mapping with the keys {', '.join(map(str, pairs))}; give one of its values")
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise DataError(
            f"{name} must be an iterable of (source, target) pairs; got {pairs!r:.60}; a file goes into data"
        )
    return pairs
