"""A process that reads one sheet of a spreadsheet, within limits, and writes a row a line as JSON.

A line is `[number, cells, ""]`, or the last one `[0, why the file cannot be read, a sheet that there is or ""]`.
"""

import json
import os
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches

import python_calamine

from ..archive import Archive
from ..errors import AllYouNeedError
from .workbook import WORKBOOK, cell_position, sheet_parts

_BASE_MEMORY, _MEMORY_FOR_A_BYTE = 256 << 20, 24  # bytes; of the file, whose text is packed
_BASE_SECONDS, _BYTES_IN_A_SECOND = 10, 1 << 20
MAX_CELLS = 1 << 24  # of the smallest rectangle around all cells, which the library makes
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Za-z]{0,9})(\d{0,12})[^>]*(?<!/)>')  # <c r="B7"/> has a format alone
_CHUNK = 1 << 20


def read_rows(path: str, sheet: str) -> Iterator[tuple[int, list[str] | str, str]]:
    """The rows of a sheet, or of the first one, with their numbers."""
    if zipfile.is_zipfile(path):
        with open(path, "rb") as file:
            _require_few_cells(Archive(file.read()), sheet)
    with python_calamine.CalamineWorkbook.from_path(path) as book:
        names = book.sheet_names
        if sheet and sheet not in names:
            (near,) = get_close_matches(sheet, names, n=1, cutoff=0) or names[:1]
            yield 0, f'has no sheet "{sheet}"; it has {", ".join(names)}', near
            return
        cells = book.get_sheet_by_name(sheet) if sheet else book.get_sheet_by_index(0)
        start = (cells.start or (0, 0))[0] + 1
        for number, row in enumerate(cells.iter_rows(), start=start):
            texts = [_as_text(cell) for cell in row]
            if any(texts):
                yield number, texts, ""


def _require_few_cells(archive: Archive, sheet: str) -> None:
    """Refuse an .xlsx file with a cell so far out that the rectangle around all of them is too large."""
    if WORKBOOK not in archive.names:
        return
    parts = sheet_parts(archive)
    part = parts.get(sheet) or next(iter(parts.values()), "")
    if part not in archive.names:
        return
    letters, numbers, rest = set[bytes](), set[bytes](), b""
    with archive.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            content = rest + chunk
            for column, number in _CELL.findall(content):
                letters.add(column)
                numbers.add(number)
            rest = content[content.rfind(b"<") :][-_CHUNK:]
    places = [cell_position(f"{column.decode()}1")[1] for column in letters]
    lines = [cell_position(f"A{number.decode()}")[0] for number in numbers]
    rows, columns = (max(counted, default=0) - min(counted, default=0) + 1 for counted in (lines, places))
    count = rows * columns
    if count > MAX_CELLS:
        raise ValueError(
            f"its cells are so far apart that {count:,} are between the first and the last; at most {MAX_CELLS:,} are "
            "read: delete what stands far out"
        )


def _as_text(cell: object) -> str:
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole and isinstance(cell, float) else cell).strip()


def main() -> None:
    """Print the rows of the sheet that the arguments name."""
    path, sheet = sys.argv[1:]
    size = os.stat(path).st_size
    memory, seconds = _BASE_MEMORY + _MEMORY_FOR_A_BYTE * size, _BASE_SECONDS + size // _BYTES_IN_A_SECOND
    with suppress(ValueError, OSError):  # not every system has such limits
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for row in read_rows(path, sheet):
            print(json.dumps(row))
    except (AllYouNeedError, python_calamine.CalamineError, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        print(json.dumps((0, f"is no spreadsheet that can be read: {reason}; save it again as .xlsx, or as .csv", "")))


if __name__ == "__main__":
    main()
