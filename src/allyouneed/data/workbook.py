"""The sheets inside an .xlsx file, and the names of cells."""

import posixpath
import re

from ..errors import DocumentError
from .archive import Archive

WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_ID = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"
_CELL = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
MOST_ROWS = 1 << 20
MOST_COLUMNS = 1 << 14


def sheet_parts(archive: Archive) -> dict[str, str]:
    """Map the names of the sheets, in order, to their parts of the archive."""
    targets = {
        relation.get("Id"): posixpath.normpath(posixpath.join("xl", relation.get("Target") or "")).lstrip("/")
        for relation in archive.read_xml(_RELATIONS).iter("{*}Relationship")
    }
    return {
        sheet.get("name") or "": targets.get(sheet.get(_ID) or sheet.get(_STRICT_ID), "")
        for sheet in archive.read_xml(WORKBOOK).iter("{*}sheet")
    }


def cell_position(reference: str) -> tuple[int, int]:
    """Return the row and the column of a cell such as B7, counted from 0. Refuses a cell that no sheet can have."""
    match = _CELL.fullmatch(reference)
    row, column = (int(match[2]) - 1, column_index(match[1])) if match else (MOST_ROWS, 0)
    if row >= MOST_ROWS or column >= MOST_COLUMNS:
        raise DocumentError(f"has a cell {reference:.20}, which no spreadsheet has; the last one is XFD1048576")
    return row, column


def column_index(letters: str) -> int:
    """Return the number of a column, counted from 0, given its letters: A is 0, AA is 26."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def column_letters(index: int) -> str:
    """Return the letters of a column, given its number counted from 0."""
    letters = ""
    rest = index + 1
    while rest:
        rest, last = divmod(rest - 1, 26)
        letters = chr(ord("A") + last) + letters
    return letters
