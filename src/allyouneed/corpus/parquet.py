"""Pairs as columns: parquet files, and data sets of the Hugging Face hub by their name. polars reads both."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import DataError, MissingExtraError
from .pair import Rows
from .tabular import find_sides, rows_to_pairs

if TYPE_CHECKING:
    import polars

_CHUNK = 50_000  # rows in memory at once


def read_parquet(where: str, columns: Sequence[str] = ()) -> Rows:
    """Rows of a parquet file, or of the files under an `hf://datasets/owner/name/…` address.

    An address may end in .parquet, .jsonl or .csv and may contain `*`; one without a file ending names all
    parquet files under it. `rows_to_pairs` says which columns make the pair.
    """
    try:
        import polars
    except ImportError:
        raise MissingExtraError(f"reading {where}", "data") from None
    try:
        yield from _rows(_scan(where), columns)
    except FileNotFoundError:
        raise DataError(f"{where} does not exist") from None
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{where} could not be read: {_first_line(error)}") from error


def _scan(where: str) -> "polars.LazyFrame":
    import polars

    if not where.startswith("hf://"):
        return polars.scan_parquet(where, glob=False)  # * and [ in a file name are ordinary characters
    if where.endswith((".jsonl", ".ndjson")):
        return polars.scan_ndjson(where)
    if where.endswith((".csv", ".tsv")):
        return polars.scan_csv(where, separator="," if where.endswith(".csv") else "\t", infer_schema=False)
    return polars.scan_parquet(where if where.endswith(".parquet") else f"{where.rstrip('/')}/**/*.parquet")


def _rows(table: "polars.LazyFrame", columns: Sequence[str]) -> Rows:
    chunks = _chunks(table.select(_needed(table.collect_schema(), columns)))
    rows = (row for chunk in chunks for row in chunk.iter_rows(named=True))
    return rows_to_pairs(enumerate(rows, start=1), columns)


def _needed(schema: "polars.Schema", columns: Sequence[str]) -> list[str]:
    """The columns that `rows_to_pairs` takes the pair from, in the order of the file; all, if none has such a name."""
    import polars

    if columns and schema.keys() >= {*columns}:
        needed = {*columns}
    elif isinstance(schema.get("translation"), polars.Struct):
        needed = {"translation"}
    elif not columns and (sides := find_sides(schema)):
        needed = {*sides}
    else:
        needed = {*schema}
    return [name for name in schema if name in needed]


def _chunks(table: "polars.LazyFrame") -> "Iterator[polars.DataFrame]":
    yield from table.collect_batches(chunk_size=_CHUNK)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
