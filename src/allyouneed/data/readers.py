"""Pairs of sentences from files of many kinds, a hub, or a task: one reader for each kind."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import cast

from ..errors import DataError
from ..text.lines import (
    ARCHIVES,
    count_lines,
    decode_lines,
    file_ending,
    not_utf8,
    raw_lines,
    read_lines,
    require_file,
    require_memory_for,
    text_lines,
)
from .exchange import read_po, read_tmx, read_xliff
from .headings import PairColumns, find_columns
from .pairs import Fault, Pair, Rows
from .tabular import ENDINGS as SPREADSHEETS
from .tabular import (
    NumberedCells,
    csv_rows,
    json_rows,
    read_csv,
    read_jsonl,
    read_parquet,
    read_spreadsheet,
    read_tsv,
    side_names,
    spreadsheet_rows,
    tsv_rows,
)
from .tasks import SPLITS, TASKS, Split, task_pairs

__all__ = [
    "Fault",
    "Pair",
    "decode_lines",
    "describe_columns",
    "has_a_pair_a_line",
    "is_task",
    "local_paths",
    "open_pairs",
    "pair_lines",
    "read_columns",
    "read_lines",
    "read_pairs",
    "source_name",
]

Where = str | tuple[str, ...]

ROWS_OF_TABLES: dict[str, Callable[[Path], Iterator[NumberedCells]]] = {
    ".tsv": tsv_rows,
    ".txt": tsv_rows,
    ".csv": csv_rows,
    **dict.fromkeys(SPREADSHEETS, spreadsheet_rows),
}
READERS: dict[str, Callable[[Path, Sequence[str]], Rows]] = {
    ".tsv": read_tsv,
    ".txt": read_tsv,
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": lambda path, columns: read_parquet(str(path), columns),
    ".tmx": read_tmx,
    ".po": lambda path, _: read_po(path),
    ".xlf": lambda path, _: read_xliff(path),
    ".xliff": lambda path, _: read_xliff(path),
    **dict.fromkeys(SPREADSHEETS, read_spreadsheet),
}
_BOTH_SIDES = READERS.keys() - {".txt"}  # files that hold both sides whatever is in them
_DOCUMENTS = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".pptx")
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar")
_REMEDIES = (
    "is a document, which has no pairs in two columns; copy its texts and their translations into two columns of a "
    "spreadsheet, and save that as .xlsx, .ods, .csv or .tsv",
    "is an archive of files; unpack it, and name the file of pairs in it",
)
_LINE_ENDINGS = (".tsv", ".txt", ".csv", ".jsonl", ".ndjson")  # of these, those with a pair a line


def open_pairs(
    where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "", limit: int = 0, seed: int = 1
) -> Rows:
    """The pairs that `where` names, one after another, with the faults between them.

    `where` is one file, whose kind follows from its ending (before .gz and others); two aligned text files; an
    `hf://` address; or a task and a split of it, such as `"dates:train"`, of which `limit` pairs are drawn by
    `seed`. `folder` is put before relative paths; `columns` names the two that make the pair, and `sheet` the sheet of
    a spreadsheet.
    Refuses at once an unknown ending, a file that does not exist, files of different length, and two files that each
    hold pairs.
    """
    if isinstance(where, tuple):
        return _aligned(*(Path(folder, name) for name in where))
    if where.startswith("hf://"):
        return read_parquet(where, columns)
    if is_task(where):
        task, _, split = where.partition(":")
        return (Pair(*pair) for pair in task_pairs(task, cast(Split, split), count=limit, seed=seed))
    path = Path(folder, where)
    ending = file_ending(path)
    if ending in (*_DOCUMENTS, *_PACKED):
        raise DataError(f"{where} {_REMEDIES[ending in _PACKED]}")
    if ending not in READERS:
        raise DataError(
            f"no pairs are known under {where!r}; name two aligned files, a file that ends in "
            f"{', '.join(READERS)} (with {', '.join(ARCHIVES)} after it or not), an hf://datasets/… address, "
            f"or a task ({', '.join(TASKS)}) and a split of it, such as "
            f"{', '.join(f'dates:{split}' for split in SPLITS)}"
        )
    require_file(path)
    return read_spreadsheet(path, columns, sheet) if ending in SPREADSHEETS else READERS[ending](path, columns)


def read_columns(where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "") -> PairColumns | None:
    """Which two columns of a table make the pairs; of lines of JSON, which two keys. None if neither is known."""
    if isinstance(where, tuple) or is_task(where) or where.startswith("hf://"):
        return None
    path = Path(folder, where)
    ending = file_ending(path)
    if _is_json(where):
        row = next((row for _, row in json_rows(path)), None)
        keys, pair = side_names(row, columns) if isinstance(row, Mapping) else ((), ())
        return PairColumns(keys.index(pair[0]), keys.index(pair[1]), keys) if len(pair) == 2 else None
    if ending not in ROWS_OF_TABLES:
        return None
    rows = spreadsheet_rows(path, sheet) if ending in SPREADSHEETS else ROWS_OF_TABLES[ending](path)
    first = next((row for row in rows if not isinstance(row.cells, str)), None)
    return find_columns(list(first.cells), columns, f"{path}, line {first.line}") if first else None


def describe_columns(where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "") -> str:
    """A line that says which columns of a table are read because its first row names them; else empty."""
    known = read_columns(where, folder=folder, columns=columns, sheet=sheet)
    is_clear = known is None or not known.heading or (len(known.heading) == 2 and _is_json(where))
    return "" if known is None or is_clear else f"{where}: {known.describe()}"


def read_pairs(
    where: Where, *, folder: str = "", columns: Sequence[str] = (), limit: int = 0, seed: int = 1
) -> list[Pair]:
    """All the pairs that `where` names; with a `limit` only that many, drawn by `seed`, in their order.

    Refuses the first line without a pair, by file, line and reason, and a file without any.
    """
    pairs, name = [], source_name(where)
    rows = open_pairs(where, folder=folder, columns=columns, limit=limit, seed=seed)
    for row in require_memory_for(rows, lambda row: sum(map(len, row)) if isinstance(row, Pair) else 0, name):
        if isinstance(row, Fault):
            raise DataError(f"{name}, line {row.line} {row.reason}")
        pairs.append(Pair(row.source.strip(), row.target.strip()))
    if not pairs:
        raise DataError(f"{name} is empty; expected pairs of a source and a target")
    if 0 < limit < len(pairs):
        chosen = sorted(random.Random(seed).sample(range(len(pairs)), limit))
        pairs = [pairs[i] for i in chosen]
    return pairs


def pair_lines(source: str | Path, target: str | Path) -> list[Pair]:
    """Pairs of line n of one file with line n of the other, each read once. Refuses empty files and unequal lengths."""
    pairs = []
    sides = text_lines(source), text_lines(target)
    for number, (left, right) in enumerate(zip_longest(*sides)):
        if left is None or right is None:
            lines = [
                number + (side is not None) + sum(1 for _ in rest)
                for side, rest in zip((left, right), sides, strict=True)
            ]
            raise _unequal(Path(source), Path(target), lines)
        pairs.append(Pair(left, right))
    if not pairs:
        empty = f"{source} is" if source == target else f"{source} and {target} are"
        raise DataError(f"{empty} empty; expected a sentence and its translation on every line")
    return pairs


def is_task(where: Where) -> bool:
    """Whether these pairs are generated by a task."""
    task, _, split = where.partition(":") if isinstance(where, str) else ("", "", "")
    return task in TASKS and split in SPLITS


def has_a_pair_a_line(where: Where) -> bool:
    """Whether these pairs are in files that have about as many lines as pairs."""
    if isinstance(where, tuple):
        return True
    return not is_task(where) and not where.startswith("hf://") and file_ending(Path(where)) in _LINE_ENDINGS


def local_paths(where: Where, *, folder: str = "") -> list[Path]:
    """The files on this machine that `where` names."""
    if isinstance(where, tuple):
        return [Path(folder, name) for name in where]
    return [] if is_task(where) or where.startswith("hf://") else [Path(folder, where)]


def source_name(where: Where) -> str:
    """The name of a source in error messages."""
    return where if isinstance(where, str) else " + ".join(where)


def _is_json(where: Where) -> bool:
    return isinstance(where, str) and file_ending(Path(where)) in (".jsonl", ".ndjson")


def _aligned(source: Path, target: Path) -> Rows:
    for path in (source, target):
        require_file(path)
    if all(file_ending(path) in _BOTH_SIDES for path in (source, target)):
        raise DataError(
            f"{source} and {target} each hold pairs by their endings, but two files of one source are read as aligned "
            "text, line n with line n; name each in a [[data.corpus]] of its own"
        )
    lines = [count_lines(path) for path in (source, target)]
    if lines[0] != lines[1]:
        raise _unequal(source, target, lines)
    return _pair_up(source, target)


def _unequal(source: Path, target: Path, lines: Sequence[int]) -> DataError:
    counts = [f"has {count} lines" if count else "is empty" for count in lines]
    return DataError(f"{source} {counts[0]} but {target} {counts[1]}; the two must pair line by line")


def _pair_up(source: Path, target: Path) -> Rows:
    for number, sides in enumerate(zip(raw_lines(source), raw_lines(target), strict=True), start=1):
        try:
            yield Pair(sides[0].decode(), sides[1].decode())
        except UnicodeDecodeError as error:
            name = source if error.object == sides[0] else target
            yield Fault(number, f"of {name} {not_utf8(error)}")
