"""Read sentence pairs from files of many kinds, the Hugging Face hub, or a task: one reader for each kind."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import cast

from ..errors import DataError
from ..text.lines import (
    ARCHIVES,
    file_ending,
    not_utf8,
    raw_lines,
    require_file,
    require_memory_for,
)
from .exchange import read_po, read_tmx, read_xliff
from .headings import HEAD_ROWS, PairColumns, find_columns, readable
from .pairs import Fault, LeftOut, Pair, Rows
from .tabular import (
    TABLE_ENDINGS,
    TEXT_TABLES,
    json_rows,
    pick_columns,
    read_parquet,
    rows_to_pairs,
    side_names,
    table_rows,
    windows_code_page,
)
from .tasks import SPLITS, TASKS, Split, task_pairs

Where = str | tuple[str, ...]
JSON_LINES = (".jsonl", ".ndjson")

READERS: dict[str, Callable[[Path, Sequence[str], str], Rows]] = {
    **dict.fromkeys(TABLE_ENDINGS, lambda path, columns, sheet: pick_columns(table_rows(path, sheet), columns, path)),
    **dict.fromkeys(JSON_LINES, lambda path, columns, _: rows_to_pairs(json_rows(path), columns)),
    ".parquet": lambda path, columns, _: read_parquet(str(path), columns),
    ".tmx": lambda path, columns, _: read_tmx(path, columns),
    ".po": lambda path, *_: read_po(path),
    **dict.fromkeys([".xlf", ".xliff"], lambda path, *_: read_xliff(path)),
}
_BOTH_SIDES = READERS.keys() - {".txt"}  # files of these kinds always hold both sides
_DOCUMENTS = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".pptx")
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar")
_REMEDIES = (
    "is a document, which has no pairs in two columns; copy its texts and their translations into two columns of a "
    "spreadsheet, and save that as .xlsx, .ods, .csv or .tsv",
    "is an archive of files; unpack it, and name the file of pairs in it",
)


def open_pairs(
    where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "", limit: int = 0, seed: int = 1
) -> Rows:
    """Open the pairs that `where` names, and yield them in order. A malformed line yields a `Fault` in its place.

    `where` is a file, whose kind follows from its ending (before .gz and similar); or two aligned text files; or an
    `hf://` address; or a task and a split such as `"dates:train"`, from which `limit` pairs are drawn by `seed`.
    Relative paths are relative to `folder`. `columns` names the two columns of the pair, and `sheet` the sheet of a
    spreadsheet. Refuses at once an unknown ending, a missing file, and two files that each hold pairs already.
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
            f"cannot find pairs named {where!r}; name two aligned files, a file that ends in "
            f"{', '.join(READERS)} (with {', '.join(ARCHIVES)} after it or not), an hf://datasets/… address, "
            f"or a task ({', '.join(TASKS)}) and one of its splits, such as "
            f"{', '.join(f'dates:{split}' for split in SPLITS)}"
        )
    require_file(path)
    return READERS[ending](path, columns, sheet)


def read_columns(where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "") -> PairColumns | None:
    """Find the two columns, or keys of JSON lines, that make the pairs; None if they cannot be known."""
    if isinstance(where, tuple) or is_task(where) or where.startswith("hf://"):
        return None
    path = Path(folder, where)
    ending = file_ending(path)
    if _is_json(where):
        row = next((row for _, row in json_rows(path)), None)
        keys, pair = side_names(row, columns) if isinstance(row, Mapping) else ((), ())
        return PairColumns(keys.index(pair[0]), keys.index(pair[1]), keys) if len(pair) == 2 else None
    if ending not in TABLE_ENDINGS:
        return None
    head = readable(islice(table_rows(path, sheet), HEAD_ROWS))
    return find_columns(head, columns, path) if head else None


def describe_columns(where: Where, *, folder: str = "", columns: Sequence[str] = (), sheet: str = "") -> str:
    """Say in one line how a table is read: its columns, the text above the heading, and its encoding; "" if unknown."""
    known = read_columns(where, folder=folder, columns=columns, sheet=sheet)
    if known is None or isinstance(where, tuple) or (len(known.heading) == 2 and _is_json(where)):
        return ""
    path = Path(folder, where)
    page = windows_code_page(path) if file_ending(path) in TEXT_TABLES else ""
    notes = [known.describe(), f"lines that are not UTF-8 are read as Windows-{page[2:]}" if page else ""]
    return f"{where}: {'; '.join(filter(None, notes))}" if any(notes) else ""


def read_pairs(
    where: Where, *, folder: str = "", columns: Sequence[str] = (), limit: int = 0, seed: int = 1
) -> list[Pair]:
    """Read all pairs that `where` names, or `limit` of them, drawn by `seed` and in their original order.

    Refuses the first line without a pair, naming file, line and reason, and a file without pairs.
    """
    pairs = _all_pairs(open_pairs(where, folder=folder, columns=columns, limit=limit, seed=seed), source_name(where))
    if 0 < limit < len(pairs):
        chosen = sorted(random.Random(seed).sample(range(len(pairs)), limit))
        pairs = [pairs[i] for i in chosen]
    return pairs


def pair_lines(source: str | Path, target: str | Path) -> list[Pair]:
    """Pair the lines of two files by number, reading each file once. Refuses empty files and unequal lengths."""
    name = f"{source}" if source == target else f"{source} + {target}"
    return _all_pairs(aligned_lines(Path(source), Path(target)), name)


def _all_pairs(rows: Rows, name: str) -> list[Pair]:
    """Collect the pairs. Refuses the first line without a pair, and a source without pairs."""
    pairs = []
    for row in require_memory_for(rows, lambda row: sum(map(len, row)) if isinstance(row, Pair) else 0, name):
        if isinstance(row, Fault):
            raise DataError(row.message(name) + row.remedy(name))
        if isinstance(row, LeftOut):
            continue
        pairs.append(Pair(row.source.strip(), row.target.strip()))
    if not pairs:
        raise DataError(f"{name} is empty; expected pairs of a source and a target")
    return pairs


def is_task(where: Where) -> bool:
    """Return True if a task generates these pairs."""
    task, _, split = where.partition(":") if isinstance(where, str) else ("", "", "")
    return task in TASKS and split in SPLITS


def local_paths(where: Where, *, folder: str = "") -> list[Path]:
    """List the files on this machine that `where` names."""
    if isinstance(where, tuple):
        return [Path(folder, name) for name in where]
    return [] if is_task(where) or where.startswith("hf://") else [Path(folder, where)]


def source_name(where: Where) -> str:
    """Return the name of a source for error messages."""
    return where if isinstance(where, str) else " + ".join(where)


def _is_json(where: Where) -> bool:
    return isinstance(where, str) and file_ending(Path(where)) in JSON_LINES


def _aligned(source: Path, target: Path) -> Rows:
    for path in (source, target):
        require_file(path)
    if all(file_ending(path) in _BOTH_SIDES for path in (source, target)):
        raise DataError(
            f"{source} and {target} each hold pairs by their endings, but two files of one source are read as aligned "
            "text, line n with line n; name each in a [[data.corpus]] of its own"
        )
    return aligned_lines(source, target)


def aligned_lines(source: Path, target: Path) -> Rows:
    """Pair the lines of two files by number, reading each file once. At the end, refuses unequal lengths."""
    sides = raw_lines(source), raw_lines(target)
    for number, lines in enumerate(zip_longest(*sides), start=1):
        if None in lines:
            counts = [number - (line is None) + sum(1 for _ in rest) for line, rest in zip(lines, sides, strict=True)]
            lengths = [f"has {count} lines" if count else "is empty" for count in counts]
            raise DataError(f"{source} {lengths[0]} but {target} {lengths[1]}; the two must pair line by line")
        try:
            yield Pair(lines[0].decode(), lines[1].decode())
        except UnicodeDecodeError as error:
            yield Fault(number, not_utf8(error), file=str((source, target)[lines.index(error.object)]))
