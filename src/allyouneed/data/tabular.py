"""Read pairs from tables: tab-separated text, CSV, spreadsheets, JSON lines, parquet, data frames and iterables.

Text files are read row by row, so that a malformed line is reported with its number and reading continues. polars reads
parquet files and data sets of the Hugging Face hub.
"""

import csv
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.language_tags import find_language
from ..errors import DataError, require_extra
from ..machine.files import parse_json
from ..text.lines import LONGEST_LINE, file_ending, is_utf8, is_windows_text, not_utf8, opened, raw_lines
from .headings import (
    HEAD_ROWS,
    SPREADSHEETS,
    NumberedCells,
    PairColumns,
    example_columns,
    find_columns,
    find_sides,
    readable,
)
from .pairs import Fault, LeftOut, Pair, Rows
from .spreadsheet import spreadsheet_rows

if TYPE_CHECKING:
    import polars


_SURROGATES = re.compile(r"[\ud800-\udfff]")

# The first line that Excel writes to declare the delimiter.
_DECLARED = re.compile(rb'"?sep=([,;:|\t])"?', re.IGNORECASE)
_LINES = 16  # most lines in a row of CSV; a longer row has an unclosed quotation mark
_UNCLOSED = f"is not CSV: a quotation mark that is not closed within {_LINES} lines"
_FRAME_ROWS = 50_000  # rows in memory at once
_SAMPLE = 1 << 20  # bytes at the beginning of a text from which its encoding is guessed
_CODE_PAGES = {  # Windows code pages, and the languages whose spreadsheets use them
    "cp1250": "bs cs hr hu pl ro sk sl sq",
    "cp1251": "be bg kk ky mk ru sr uk",
    "cp1253": "el",
    "cp1254": "az tr",
    "cp1255": "he",
    "cp1256": "ar fa ur",
    "cp1257": "et lt lv",
    "cp1258": "vi",
}
_BEGIN, _TOTALS = 20, 3  # rows that show whether both columns have words, and the most rows of totals
_TOTAL = re.compile(
    r"\b(?:(?:sub|grand )?total\w*|sum|summ?[ae]|somme|gesamt\w*|insgesamt|totaal|totaux|razem|ogółem|celkem|celkom|"
    r"összesen|toplam|yhteensä|итого|всего|разом)\b|合計|合计|总计|總計|합계",
    re.IGNORECASE,
)


def tsv_rows(path: Path) -> Iterator[NumberedCells]:
    """Yield the rows of a tab-separated file with all their cells, without lines of only spaces.

    Quotation marks have no special meaning.
    """
    decode = _decoder(path)
    for number, line in enumerate(raw_lines(path), start=1):
        if line.strip(b" "):
            try:
                yield NumberedCells(number, decode(line).split("\t"))
            except UnicodeDecodeError as error:
                yield NumberedCells(number, not_utf8(error))


def windows_code_page(path: Path) -> str:
    """Guess the code page, such as cp1252, of a table that is not UTF-8; "" if it is unclear.

    The languages in the heading decide. Without them, text that looks Western is cp1252.
    """
    with opened(path) as stream:
        sample = stream.read(_SAMPLE)
    if is_utf8(sample):
        return ""
    for page, languages in _CODE_PAGES.items():
        for line in sample.split(b"\n")[:_BEGIN]:
            cells = [cell.strip(' "\r') for cell in re.split("[\t;,|]", line.decode(page, errors="replace"))]
            if {find_language(name).partition("-")[0] for name in find_sides(cells) or ()} & {*languages.split()}:
                return page
    return "cp1252" if is_windows_text(sample) else ""


def _decoder(path: Path) -> Callable[[bytes], str]:
    """Return a function that decodes a line of a file. A line of valid UTF-8 is always decoded as UTF-8."""
    page = windows_code_page(path)
    if not page:
        return bytes.decode

    def decode(line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line.decode(page, errors="replace")

    return decode


def json_rows(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the JSON value on each line with the line's number, or a `Fault` for a line that is not JSON."""
    for number, line in enumerate(raw_lines(path), start=1):
        if not line.strip():
            continue
        try:
            yield number, parse_json(line.decode())
        except UnicodeDecodeError as error:
            yield number, Fault(number, not_utf8(error))
        except ValueError as error:
            yield number, Fault(number, str(error))


def rows_to_pairs(rows: Iterable[tuple[int, object]], columns: Sequence[str]) -> Rows:
    """Find the pair in each numbered object, or say why there is none.

    The two `columns` are looked up in the object and in its `translation`. Without `columns`, the first object that has
    a pair decides the names for all: the object, or its `translation`, must have `source` and `target` (or `src`,
    `tgt`, `trg`), or exactly two keys.
    """
    for number, row in rows:
        if isinstance(row, Mapping):
            names = columns or side_names(row)[1]
            pair = row_to_pair(row, names, number)
            columns = names if isinstance(pair, Pair) else columns
            yield pair
        else:
            yield row if isinstance(row, Fault) else Fault(number, f"is not an object: {row!r:.40}")


def side_names(row: Mapping[str, object], columns: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all names in an object or its `translation`, and the names of its two sides (all names, if unclear).

    `columns` are the names of the two sides that the user gave, if any.
    """
    inner = row.get("translation")
    names = tuple(row if not isinstance(inner, Mapping) or (columns and {*columns} <= row.keys()) else inner)
    return names, tuple(columns) if {*columns} <= {*names} and columns else find_sides(names) or names


def row_to_pair(row: Mapping[str, Any], names: Sequence[str], number: int) -> Pair | Fault:
    """Return the pair with these names in an object or in its `translation`, or say why there is none."""
    inner = row.get("translation")
    if isinstance(inner, Mapping) and not all(name in row for name in names):
        row = inner
    if len(names) != 2:
        example = example_columns([*row], [[str(value) for value in row.values()]])
        return Fault(number, f"has the keys {', '.join(map(str, row))}; name two of them as columns, such as {example}")
    for name in names:
        if not isinstance(row.get(name), str):
            what = f"{row[name]!r:.40} under" if name in row else "no"
            return Fault(number, f'has {what} "{name}"; a string is needed')
        if _SURROGATES.search(row[name]):
            return Fault(number, f'has half a character under "{name}" (a lone surrogate)')
    return Pair(row[names[0]], row[names[1]])


def csv_rows(path: Path) -> Iterator[NumberedCells]:
    """Yield the rows of a CSV file (RFC 4180), whose columns are separated by commas or semicolons.

    Semicolons separate columns if the first line has no comma. A row has at most 16 lines. A malformed row is skipped
    with all its lines; if its end is not found, only its first line is skipped.
    """
    csv.field_size_limit(LONGEST_LINE)
    decode = _decoder(path)
    lines = enumerate(raw_lines(path), start=1)
    ahead = deque(islice(lines, _LINES))
    first = ahead[0][1] if ahead else b""
    if declared := _DECLARED.fullmatch(first):
        delimiter = declared[1].decode()
        ahead.popleft()
    else:
        unquoted = re.sub(rb'"[^"]*"', b"", first)
        delimiter = ";" if b";" in unquoted and b"," not in unquoted else ","
    while ahead:
        number = ahead[0][0]
        taken = 1
        rows = csv.reader((decode(line) + "\n" for _, line in ahead), delimiter=delimiter, strict=True)
        try:
            row = next(rows)
        except UnicodeDecodeError as error:
            yield NumberedCells(number, _UNCLOSED if rows.line_num else not_utf8(error))
        except csv.Error as error:
            unclosed = str(error) == "unexpected end of data"
            yield NumberedCells(number, _UNCLOSED if unclosed else f"is not CSV: {error}")
        else:
            taken = rows.line_num
            if len(row) > 1 or "".join(row).strip(" "):
                yield NumberedCells(number, row, taken)
        for _ in range(taken):
            ahead.popleft()
        ahead.extend(islice(lines, taken))


def pick_columns(rows: Iterator[NumberedCells], columns: Sequence[str], path: Path) -> Rows:
    """Pick the two columns of each row below the heading. The heading is one of the first rows, or is missing.

    The heading, or else the first row, decides how many columns there are. Totals at the end become a `LeftOut`.
    """
    head = list(islice(rows, HEAD_ROWS))
    if not (known := readable(head)):
        yield from (Fault(number, str(cells)) for number, cells, _ in head)
        if head:
            yield from pick_columns(rows, columns, path)
        return
    try:
        picked = find_columns(known, columns, path)
    except DataError as error:
        unread = next((Fault(row.line, row.cells) for row in head if isinstance(row.cells, str)), None)
        if unread and unread.line < known[0].line:  # the unreadable row may be the heading
            raise DataError(unread.message(str(path)) + unread.remedy(str(path))) from error
        raise
    first = known[picked.row]
    body = (row for row in chain(head, rows) if row.line >= first.line + bool(picked.heading))
    faults = (row for row in head if isinstance(row.cells, str) and row.line < first.line)
    yield from _without_totals(_pairs(chain(faults, body), picked, len(first.cells)))


def _pairs(rows: Iterable[NumberedCells], picked: PairColumns, width: int) -> Iterator[tuple[Pair | Fault, LeftOut]]:
    """Yield each row twice: as a pair or a fault, and as the `LeftOut` that replaces it if the row has totals."""
    for number, cells, lines in rows:
        if isinstance(cells, str):
            yield Fault(number, cells, lines), LeftOut(number, "")
        elif len(cells) != width:
            reason = f"has {len(cells)} column{'s' * (len(cells) != 1)}, not {width}"
            yield Fault(number, reason, lines), LeftOut(number, "")
        else:
            text = ", ".join(filter(None, map(str.strip, cells)))
            yield Pair(cells[picked.source], cells[picked.target]), LeftOut(number, text)


def _without_totals(rows: Iterator[tuple[Pair | Fault, LeftOut]]) -> Rows:
    """Replace rows of totals at the end with a `LeftOut`.

    Such a row has numbers instead of words, or a word such as "Total".
    """
    begin = list(islice(rows, _BEGIN))
    pairs = [row for row, _ in begin if isinstance(row, Pair)]
    has_words = bool(pairs) and all(_has_letter(side) for pair in pairs[: -(-len(pairs) // 2)] for side in pair)
    held: list[tuple[Pair | Fault, LeftOut]] = []
    for row, total in chain(begin, rows):
        is_total = has_words and isinstance(row, Pair) and _is_total(row, total)
        if not is_total or len(held) == _TOTALS:
            yield from (one for one, _ in held)
            held.clear()
        if is_total:
            held.append((row, total))
        else:
            yield row
    yield from (total for _, total in held)


def _is_total(pair: Pair, row: LeftOut) -> bool:
    worded = sum(map(_has_letter, pair))
    return worded == 0 or (worded == 1 and bool(_TOTAL.search(row.text)))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def read_parquet(where: str, columns: Sequence[str] = ()) -> Rows:
    """Read the rows of a parquet file, or of the files under an `hf://datasets/owner/name/…` address.

    An address may end in .parquet, .jsonl or .csv and may contain `*`. An address without a file ending names all
    parquet files under it. `rows_to_pairs` describes which columns make the pair.
    """
    polars = require_extra("polars", f"reading {where}", "data")
    try:
        table = _scan(where)
        frames = table.select(_needed_columns(table.collect_schema(), columns)).collect_batches(chunk_size=_FRAME_ROWS)
        rows = (row for frame in frames for row in frame.iter_rows(named=True))
        yield from rows_to_pairs(enumerate(rows, start=1), columns)
    except FileNotFoundError:
        raise DataError(f"{where} does not exist") from None
    except (polars.exceptions.PolarsError, OSError) as error:
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DataError(f"{where} could not be read: {why}") from error


def _scan(where: str) -> "polars.LazyFrame":
    import polars

    if not where.startswith("hf://"):
        return polars.scan_parquet(where, glob=False)  # * and [ are ordinary characters in the name of a local file
    if where.endswith((".jsonl", ".ndjson")):
        return polars.scan_ndjson(where)
    if where.endswith((".csv", ".tsv")):
        return polars.scan_csv(where, separator="," if where.endswith(".csv") else "\t", infer_schema=False)
    return polars.scan_parquet(where if where.endswith(".parquet") else f"{where.rstrip('/')}/**/*.parquet")


def _needed_columns(schema: "polars.Schema", columns: Sequence[str]) -> list[str]:
    """Choose the columns that `rows_to_pairs` needs, in the order of the file; all columns if it finds no names."""
    import polars

    if not (columns and schema.keys() >= {*columns}):
        if isinstance(schema.get("translation"), polars.Struct):
            columns = ["translation"]
        else:
            columns = () if columns else find_sides(schema) or ()
    return [name for name in schema if name in columns or not columns]


def iterate_pairs(pairs: Any, *, columns: Sequence[str] = (), name: str = "pairs") -> Iterator[Pair]:
    """Yield the pairs of an iterable or a data frame. `name` is its name in error messages.

    A row is a (source, target) pair of strings, or a mapping such as a row of a data set. `columns` names the source
    and the target in a data frame or a mapping. Without `columns`, they are `source` and `target` (or `src`, `tgt`,
    `trg`), the two languages of `translation`, or the only two columns; the first mapping decides for all. Refuses a
    string, a mapping of splits, and a row that is not a pair, naming its number.
    """
    for number, row in enumerate(_plain_rows(pairs, name), start=1):
        if isinstance(row, Mapping):
            columns = columns or side_names(row)[1]
            pair = row_to_pair(row, columns, number)
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 2:
            pair = row_to_pair({"source": row[0], "target": row[1]}, ("source", "target"), number)
        else:
            pair = Fault(number, f"must be (source, target), two strings; got {row!r:.60}")
        if isinstance(pair, Fault):
            raise DataError(f"{name}, row {number} {pair.reason}")
        yield pair


def _plain_rows(pairs: Any, name: str) -> Iterable[Any]:
    if hasattr(pairs, "collect_schema") and hasattr(pairs, "collect"):  # a lazy frame of polars
        pairs = pairs.collect()
    if hasattr(pairs, "iter_rows"):  # a frame of polars
        return pairs.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(pairs, "itertuples"):  # a frame of pandas, which would iterate over the names of its columns
        names = list(pairs.columns)
        return (dict(zip(names, row, strict=True)) for row in pairs.itertuples(index=False, name=None))
    if isinstance(pairs, Mapping):
        raise DataError(f"{name} is a mapping with the keys {', '.join(map(str, pairs))}; give one of its values")
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise DataError(
            f"{name} must be an iterable of (source, target) pairs; got {pairs!r:.60}; a file goes into data"
        )
    return pairs


TEXT_TABLES = (".tsv", ".txt", ".csv")
TABLE_ENDINGS = (*TEXT_TABLES, *SPREADSHEETS)


def table_rows(path: Path, sheet: str = "") -> Iterator[NumberedCells]:
    """Yield all rows of a file of `TABLE_ENDINGS`. `sheet` names the sheet of a spreadsheet, by default the first."""
    ending = file_ending(path)
    if ending in SPREADSHEETS:
        return spreadsheet_rows(path, sheet)
    return csv_rows(path) if ending == ".csv" else tsv_rows(path)
