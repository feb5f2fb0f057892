"""Pairs of two columns of a spreadsheet: Excel and LibreOffice. python-calamine reads it."""

import zipfile
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from ..errors import DataError, MissingExtraError
from ..text.lines import MAX_IN_MEMORY
from .pair import Rows
from .tabular import NumberedCells, pick_columns

ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def read_spreadsheet(path: Path, columns: Sequence[str] = (), sheet: str = "") -> Rows:
    """Pairs of one sheet of a spreadsheet, the first one unless `sheet` names another. A row is counted as a line."""
    return pick_columns(spreadsheet_rows(path, sheet), columns, path)


def spreadsheet_rows(path: Path, sheet: str = "") -> Iterator[NumberedCells]:
    """The rows of a sheet with all their cells; a row without any text is none, and
    one that is longer than the first ends with it.

    A number is written without a zero after the point. Refuses a file that is no spreadsheet, one that is protected by
    a password, one larger than `MAX_IN_MEMORY` when unpacked, and a sheet that is not there.
    """
    try:
        import python_calamine
    except ImportError:
        raise MissingExtraError(f"reading {path}", "data") from None
    _require_memory(path)
    try:
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            names = book.sheet_names
            if sheet and sheet not in names:
                (near,) = get_close_matches(sheet, names, n=1, cutoff=0) or names[:1]
                raise DataError(f'{path} has no sheet "{sheet}"; it has {", ".join(names)}').mended_by("--sheet", near)
            cells = book.get_sheet_by_name(sheet) if sheet else book.get_sheet_by_index(0)
            start = (cells.start or (0, 0))[0] + 1
            width = 0  # without empty columns at the end, which a format alone may have made
            for number, row in enumerate(cells.iter_rows(), start=start):
                texts = [_as_text(cell) for cell in row]
                width = width or max((position for position, text in enumerate(texts, start=1) if text), default=0)
                if any(texts):
                    yield NumberedCells(number, texts[:width])
    except python_calamine.CalamineError as error:
        raise DataError(
            f"{path} is no spreadsheet that can be read: {error}; save it again as .xlsx, or as .csv"
        ) from None


def _as_text(cell: object) -> str:
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole and isinstance(cell, float) else cell).strip()


def _require_memory(path: Path) -> None:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_IN_MEMORY:
            raise DataError(
                f"{path} is {size >> 20:,} MiB when it is unpacked, more than {MAX_IN_MEMORY >> 20:,}; save it as .csv"
            )
