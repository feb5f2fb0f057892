"""A process that reads one sheet of a spreadsheet, within limits, and writes each row as a line of JSON.

A line is `[number, cells, ""]`. If the file cannot be read, the last line is `[0, reason, sheet]`, where `sheet` is the
name of an existing sheet or "".
"""

import json
import os
import re
import resource
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from io import BytesIO
from itertools import pairwise

import python_calamine

from ..errors import AllYouNeedError
from .archive import Archive
from .workbook import WORKBOOK, cell_position, sheet_parts

_BASE_MEMORY, _MEMORY_FOR_A_BYTE = 256 << 20, 24  # bytes; the second is for each byte of the packed file
_BASE_SECONDS = 10
_BYTES_IN_A_SECOND = 1 << 20
MAX_CELLS = 1 << 24  # in the smallest rectangle around all cells, which the library allocates
# A cell with content; <c r="B7"/> has only a format.
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Za-z]{0,9})(\d{0,12})[^>]*(?<!/)>')
_WHOLE_CELL = re.compile(_CELL.pattern + rb".*?</(?:\w+:)?c>", re.DOTALL)
_WIDE_GAP = 100  # empty columns or rows; a cell beyond such a gap does not belong to the table
_CHUNK = 1 << 20


def read_rows(path: str, sheet: str) -> Iterator[tuple[int, list[str] | str, str]]:
    """Yield the numbered rows of a sheet, by default the first. The last item says if distant cells are left out."""
    source: str | BytesIO = path
    far_out: list[str] = []
    if zipfile.is_zipfile(path):
        source, far_out = _without_far_cells(path, sheet)
    with python_calamine.CalamineWorkbook.from_object(source) as book:
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
    for cell in far_out:
        yield cell_position(cell)[0] + 1, f"has a cell {cell} far from all others, which is left out", ""


def _without_far_cells(path: str, sheet: str) -> tuple[str | BytesIO, list[str]]:
    """Remove distant cells, so that the rest fits into a small rectangle. Returns the file and the removed cells.

    A distant cell lies beyond the widest gap between columns or rows. Refuses a sheet that is still too large.
    """
    with open(path, "rb") as file:
        archive = Archive(file.read())
    parts = sheet_parts(archive) if WORKBOOK in archive.names else {}
    part = parts.get(sheet) or next(iter(parts.values()), "")
    if part not in archive.names:
        return path, []
    letters = Counter[bytes]()
    numbers = Counter[bytes]()
    rest = b""
    with archive.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            content = rest + chunk
            for column, number in _CELL.findall(content):
                letters[column] += 1
                numbers[number] += 1
            rest = content[content.rfind(b"<") :][-_CHUNK:]
    columns = {cell_position(f"{letter.decode()}1")[1]: count for letter, count in letters.items()}
    rows = {cell_position(f"A{number.decode()}")[0]: count for number, count in numbers.items()}
    if _extent(columns) * _extent(rows) <= MAX_CELLS:
        return path, []
    columns = _without_far_places(columns)
    rows = _without_far_places(rows)
    if (size := _extent(columns) * _extent(rows)) > MAX_CELLS:
        raise ValueError(
            f"its cells are so far apart that {size:,} are between the first and the last; at most {MAX_CELLS:,} are "
            "read: delete the distant cells"
        )
    far_out: list[str] = []

    def kept(match: re.Match[bytes]) -> bytes:
        row, column = cell_position(name := (match[1] + match[2]).decode())
        if column in columns and row in rows:
            return match[0]
        far_out.append(name)
        return b""

    return BytesIO(archive.replaced({part: _WHOLE_CELL.sub(kept, archive.read(part))})), far_out


def _extent(places: Mapping[int, int]) -> int:
    """Count the columns or rows from the first to the last that has a cell."""
    return max(places, default=0) - min(places, default=0) + 1


def _without_far_places(counts: Mapping[int, int]) -> dict[int, int]:
    """Keep the side of the widest gap that has more cells. `counts` has the number of cells by column, or by row."""
    places = sorted(counts)
    gap, first = max(((after - before, i) for i, (before, after) in enumerate(pairwise(places), 1)), default=(0, 0))
    if gap <= _WIDE_GAP:
        return dict(counts)
    sides = places[:first], places[first:]
    return {place: counts[place] for place in max(sides, key=lambda side: sum(map(counts.__getitem__, side)))}


def _as_text(cell: object) -> str:
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole and isinstance(cell, float) else cell).strip()


def main() -> None:
    """Print the rows of the sheet that the arguments name."""
    path, sheet = sys.argv[1:]
    size = os.stat(path).st_size
    memory = _BASE_MEMORY + _MEMORY_FOR_A_BYTE * size
    seconds = _BASE_SECONDS + size // _BYTES_IN_A_SECOND
    with suppress(ValueError, OSError):  # some systems have no such limits
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for row in read_rows(path, sheet):
            print(json.dumps(row))
    except (AllYouNeedError, python_calamine.CalamineError, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        print(json.dumps((0, f"is not a readable spreadsheet: {reason}; save it again as .xlsx, or as .csv", "")))


if __name__ == "__main__":
    main()
