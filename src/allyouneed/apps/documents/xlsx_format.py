"""Spreadsheets (.xlsx): a column is translated in place or into another column, as in a text table.

Only translated cells are written, as texts inside the sheet. Everything else stays: formulas, formats, widths and other
sheets. A new cell has the format of the cell that it translates.
"""

import io
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple, cast

from lxml import etree

from ...data.archive import Archive
from ...data.headings import HEAD_ROWS
from ...data.safe_xml import Element, only_xml
from ...data.workbook import WORKBOOK, cell_position, column_letters, sheet_parts
from ...errors import DocumentError
from .columns import ColumnCell, Columns, column_document, find_columns
from .unit import Document, DocumentOptions

_STRINGS = "xl/sharedStrings.xml"
_FORMATS_LOST = ("formats within the cell are lost",)
MOST_TEXT = 1 << 25  # characters in all cells to translate


class _String(NamedTuple):
    text: str
    has_formats: bool


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A sheet: its part of the archive, the elements of its rows, and the cells of each row by column."""

    name: str
    part: str
    root: Element
    rows: list[tuple[Element, dict[int, Element]]]
    strings: Sequence[_String]

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell, or the last result of a formula; "" if there is none."""
        cell = self.rows[row][1].get(column)
        return "" if cell is None else _cell_text(cell, self.strings)

    def head(self) -> list[list[str]]:
        """Return the texts of the first rows, filled up to equal lengths."""
        rows = range(min(HEAD_ROWS, len(self.rows)))
        width = max((column + 1 for row in rows for column in self.rows[row][1] if self.text(row, column)), default=0)
        return [[self.text(row, column) for column in range(width)] for row in rows]


def read_xlsx_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the cells of `options.column` in each sheet with a column of this name, or else in the first sheet.

    A row with text in `options.into` is kept, and so is a formula that would be replaced.
    """
    archive = Archive(data)
    if WORKBOOK not in archive.names:
        raise DocumentError("is not an .xlsx file: it has no workbook")
    shared = archive.read_xml(_STRINGS).iterchildren("{*}si") if _STRINGS in archive.names else ()
    strings = list(map(_read_string, shared))
    parts = {name: part for name, part in sheet_parts(archive).items() if part in archive.names}
    sheets = [_read_sheet(archive, name, part, strings) for name, part in parts.items()]
    chosen = list(_choose_columns([sheet for sheet in sheets if sheet.rows], options))
    places = [(sheet, columns, row) for sheet, columns in chosen for row in _body(sheet, columns)]
    # Counted before reading, because many cells may share a long string.
    if sum(len(sheet.text(row, columns.source)) for sheet, columns, row in places) > MOST_TEXT:
        raise DocumentError(f"has more than {MOST_TEXT:,} characters in the column; split it")
    cells = [_column_cell(sheet, columns, row) for sheet, columns, row in places]

    def write(texts: Sequence[str | None]) -> bytes:
        if not any(texts):
            return data
        changed: dict[str, Element] = {}
        copies = {sheet.part: _copied(sheet) for sheet, _ in chosen}
        for sheet, columns in chosen:
            if columns.heading and columns.first_row and not sheet.text(columns.first_row - 1, columns.target):
                _put(copies[sheet.part], columns, columns.first_row - 1, columns.heading)
        for (sheet, columns, row), text in zip(places, texts, strict=True):
            if text is not None and text != sheet.text(row, columns.target):
                _put(copies[sheet.part], columns, row, text)
                changed[sheet.part] = copies[sheet.part].root
        return archive.replaced({part: _serialized(root) for part, root in changed.items()})

    return column_document(cells, write, numbers=options.numbers)


def _choose_columns(sheets: Sequence[_Sheet], options: DocumentOptions) -> Iterator[tuple[_Sheet, Columns]]:
    """Yield the sheets that have a column of this name, or else the first sheet, with a column by number or letter."""
    named = [sheet for sheet in sheets if options.column and any(options.column in row for row in sheet.head())]
    for sheet in named or sheets[:1]:
        yield sheet, find_columns(sheet.head(), options, letters=True)
    if not sheets:
        raise DocumentError("has no cell with text")


def _body(sheet: _Sheet, columns: Columns) -> Iterator[int]:
    for row in range(columns.first_row, len(sheet.rows)):
        cell = sheet.rows[row][1].get(columns.source)
        is_formula = cell is not None and columns.source == columns.target and cell.find("{*}f") is not None
        if sheet.text(row, columns.source) and not is_formula:
            yield row


def _column_cell(sheet: _Sheet, columns: Columns, row: int) -> ColumnCell:
    is_replaced = columns.target == columns.source
    cell = sheet.rows[row][1][columns.source]
    lost = _FORMATS_LOST if is_replaced and _has_formats(cell, sheet.strings) else ()
    key = f"{sheet.name}!{cell.get('r')}"
    existing = "" if is_replaced else sheet.text(row, columns.target).strip()
    return ColumnCell(sheet.text(row, columns.source), existing, key, lost)


def _read_sheet(archive: Archive, name: str, part: str, strings: Sequence[_String]) -> _Sheet:
    return _with_rows(name, part, archive.read_xml(part), strings)


def _copied(sheet: _Sheet) -> _Sheet:
    return _with_rows(sheet.name, sheet.part, deepcopy(sheet.root), sheet.strings)


def _with_rows(name: str, part: str, root: Element, strings: Sequence[_String]) -> _Sheet:
    """Read a sheet. If rows or cells do not state their positions, write these into them."""
    rows: list[tuple[Element, dict[int, Element]]] = []
    number = 0
    for row in root.iterfind("{*}sheetData/{*}row"):
        number = int(row.get("r") or number + 1)
        cells: dict[int, Element] = {}
        column = -1
        for cell in row.iterchildren("{*}c"):
            column = cell_position(cell.get("r") or f"{column_letters(column + 1)}{number}")[1]
            cell.set("r", f"{column_letters(column)}{number}")
            cells[column] = cell
        row.set("r", str(number))
        rows.append((row, cells))
    return _Sheet(name, part, root, rows, strings)


def _cell_text(cell: Element, strings: Sequence[_String]) -> str:
    kind, value = cell.get("t"), cell.findtext("{*}v") or ""
    if kind == "s":
        return strings[int(value)].text if value.isdecimal() and int(value) < len(strings) else ""
    if kind == "inlineStr":
        return _read_string(cell.find("{*}is")).text
    return value if kind in (None, "n", "str") else ""


def _read_string(string: Element | None) -> _String:
    """Read the text of a string from all its differently formatted parts, without the furigana of Japanese words."""
    if string is None:
        return _String("", has_formats=False)
    texts = (text for child in string.iterchildren("{*}t", "{*}r") for text in child.iter("{*}t"))
    return _String("".join(text.text or "" for text in texts), has_formats=len(list(string.iterchildren("{*}r"))) > 1)


def _has_formats(cell: Element, strings: Sequence[_String]) -> bool:
    value = cell.findtext("{*}v") or ""
    is_shared = cell.get("t") == "s" and value.isdecimal() and int(value) < len(strings)
    return (strings[int(value)] if is_shared else _read_string(cell.find("{*}is"))).has_formats


def _put(sheet: _Sheet, columns: Columns, row: int, text: str) -> None:
    """Write a text into the target column of a row, as a text of the sheet itself."""
    element, cells = sheet.rows[row]
    source, cell = cells[columns.source], cells.get(columns.target)
    namespace = etree.QName(source).namespace
    if cell is None:
        cell = etree.Element(source.tag, r=f"{column_letters(columns.target)}{element.get('r')}")
        if style := source.get("s"):
            cell.set("s", style)
        after = [other for column, other in cells.items() if column < columns.target]
        element.insert(element.index(after[-1]) + 1 if after else 0, cell)
        element.attrib.pop("spans", "")  # the columns of the row; programs work these out themselves
        cells[columns.target] = cell
    for child in list(cell):
        cell.remove(child)
    for name in ("cm", "vm"):  # left over from a formula
        cell.attrib.pop(name, "")
    cell.set("t", "inlineStr")
    string = etree.SubElement(cell, f"{{{namespace}}}is")
    content = etree.SubElement(string, f"{{{namespace}}}t")
    content.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    content.text = only_xml(text)


def _serialized(root: Element) -> bytes:
    part, tree = io.BytesIO(), root.getroottree()
    tree.write(part, encoding="UTF-8", xml_declaration=True, standalone=cast(bool, tree.docinfo.standalone))
    return part.getvalue()
