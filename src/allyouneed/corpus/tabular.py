"""Pairs as rows of a table: tab-separated, CSV, or one JSON object a line.

Python's readers get one row at a time, so that a malformed line is reported with its number and reading continues.
"""

import csv
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..files import parse_json
from .lines import not_utf8, raw_lines
from .pair import Fault, Pair, Rows

_HEADINGS = {"source", "target", "src", "tgt", "trg"}

_SURROGATES = re.compile(r"[\ud800-\udfff]")

_LINES = 16  # of a row of CSV, at most; a longer one has a quotation mark that is not closed
_UNCLOSED = f"is not CSV: a quotation mark that is not closed within {_LINES} lines"


class NumberedCells(NamedTuple):
    """A row that begins at a line: its cells, or the reason why it has none; and its number of lines."""

    line: int
    cells: list[str] | str
    lines: int = 1


def read_tsv(path: Path, columns: Sequence[str] = ()) -> Rows:
    """Pairs of a file with tabs between its columns. A quotation mark is an ordinary character."""
    return _picked(tsv_rows(path), columns, path)


def tsv_rows(path: Path) -> Iterator[NumberedCells]:
    """All rows of such a file, with all their cells. An empty line is none."""
    return (NumberedCells(number, _split(line)) for number, line in enumerate(raw_lines(path), start=1) if line)


def read_csv(path: Path, columns: Sequence[str] = ()) -> Rows:
    """Rows of a file with commas between its columns, or semicolons if its first line has no comma (RFC 4180).

    A row has at most 16 lines. All lines of a malformed row are skipped, or only the first if it has no end.
    """
    return _picked(_csv_rows(path), columns, path)


def read_jsonl(path: Path, columns: Sequence[str] = ()) -> Rows:
    """One JSON object a line; `row_to_pair` says which of its values make the pair."""
    for number, line in enumerate(raw_lines(path), start=1):
        if not line:
            continue
        try:
            row = parse_json(line.decode())
        except UnicodeDecodeError as error:
            yield Fault(number, not_utf8(error))
        except ValueError as error:
            yield Fault(number, str(error))
        else:
            yield row_to_pair(row, columns, number)


def row_to_pair(row: object, columns: Sequence[str], number: int) -> Pair | Fault:
    """The pair in the object on line `number`, or why it has none.

    The two `columns` are looked up in the object itself and in its `translation`. Without them the
    object, or its `translation`, must have `source` and `target`, or exactly two keys.
    """
    if not isinstance(row, Mapping):
        return Fault(number, f"is no object but {row!r:.40}")
    inner = row.get("translation")
    if isinstance(inner, Mapping) and not (columns and all(name in row for name in columns)):
        row = inner
    names = columns or (("source", "target") if "source" in row and "target" in row else tuple(row))
    if len(names) != 2:
        return Fault(number, f"has the keys {', '.join(map(str, row))}; name two of them in data.columns")
    for name in names:
        if not isinstance(row.get(name), str):
            what = f"{row[name]!r:.40} under" if name in row else "no"
            return Fault(number, f'has {what} "{name}"; a string is needed')
        if _SURROGATES.search(row[name]):
            return Fault(number, f'has half a character under "{name}" (a lone surrogate)')
    return Pair(row[names[0]], row[names[1]])


def _split(line: bytes) -> list[str] | str:
    try:
        return line.decode().split("\t")
    except UnicodeDecodeError as error:
        return not_utf8(error)


def _csv_rows(path: Path) -> Iterator[NumberedCells]:
    """Rows of CSV by RFC 4180. After a malformed line, reading continues at the next one."""
    lines = enumerate(raw_lines(path), start=1)
    ahead = deque(islice(lines, _LINES))
    first = re.sub(rb'"[^"]*"', b"", ahead[0][1]) if ahead else b""
    delimiter = ";" if b";" in first and b"," not in first else ","
    while ahead:
        number, taken = ahead[0][0], 1
        rows = csv.reader((line.decode() + "\n" for _, line in ahead), delimiter=delimiter, strict=True)
        try:
            row = next(rows)
        except UnicodeDecodeError as error:
            yield NumberedCells(number, _UNCLOSED if rows.line_num else not_utf8(error))
        except csv.Error as error:
            unclosed = str(error) == "unexpected end of data"
            yield NumberedCells(number, _UNCLOSED if unclosed else f"is not CSV: {error}")
        else:
            taken = rows.line_num
            if row:
                yield NumberedCells(number, row, taken)
        for _ in range(taken):
            ahead.popleft()
        ahead.extend(islice(lines, taken))


def _picked(rows: Iterator[NumberedCells], columns: Sequence[str], path: Path) -> Rows:
    """The two columns of each row; the first row decides how many there are and whether it is a heading."""
    width, source, target = 0, 0, 1
    for number, cells, lines in rows:
        if isinstance(cells, str):
            yield Fault(number, cells)
            continue
        if not width:
            width = len(cells)
            source, target, heading = _find_columns(cells, columns, f"{path}, line {number}")
            if heading:
                continue
        if len(cells) == width:
            yield Pair(cells[source], cells[target])
        else:
            yield Fault(number, f"has {len(cells)} column{'s' * (len(cells) != 1)}, not {width}", lines)


def _find_columns(first: list[str], columns: Sequence[str], where: str) -> tuple[int, int, bool]:
    if all(name.isdecimal() for name in columns) and columns:
        numbers = [int(name) for name in columns]
        if not 1 <= min(numbers) <= max(numbers) <= len(first):
            raise DataError(f"{where} has {len(first)} columns; data.columns asks for {list(columns)}, counted from 1")
        return numbers[0] - 1, numbers[1] - 1, False
    if columns:
        names = [cell.strip() for cell in first]
        missing = [name for name in columns if name not in names]
        if missing:
            raise DataError(
                f'{where} is no heading with "{missing[0]}" but {first!r:.80}; '
                'if the file has none, number its columns, data.columns=["1","2"]'
            )
        return names.index(columns[0]), names.index(columns[1]), True
    if len(first) != 2:
        raise DataError(
            f"{where} has {len(first)} column{'s' * (len(first) != 1)}, {first!r:.80}; expected source and target. "
            'Name two in data.columns, by name (["en","it"]) or number (["2","4"])'
        )
    return 0, 1, is_heading(first)


def is_heading(cells: list[str]) -> bool:
    """Whether two cells are the names of columns: source and target, or two language codes, such as en and it."""
    return all(cell.strip().lower() in _HEADINGS for cell in cells) or _are_language_codes(cells)


def _are_language_codes(cells: list[str]) -> bool:
    return len(set(cells)) == 2 and all(
        len(cell) == 2 and cell.isascii() and cell.isalpha() and cell.islower() for cell in cells
    )
