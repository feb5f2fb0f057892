"""A column of a table in a text file (.csv, .tsv), translated in place or into another column.

Python's csv module does not report the position of a cell, so a pattern finds the cells here (RFC 4180). All bytes
outside translated cells stay.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...data.headings import HEAD_ROWS
from ...errors import DocumentError
from .columns import ColumnCell, Columns, column_document, find_columns
from .encoded_text import Edit, EncodedText, decode_text, line_numbers
from .unit import Document, DocumentOptions

_Cell = tuple[int, int]  # characters of the cell, with quotation marks
_Row = list[_Cell]


class TableStyle(NamedTuple):
    """How a table is written: the separator of cells, whether cells may have quotation marks, and where rows start."""

    delimiter: str
    quoted: bool
    start: int = 0

    def rows(self, text: str) -> Iterator[_Row]:
        """Yield the cells of each row. Refuses an unclosed quotation mark, and names its line."""
        plain = rf"[^{re.escape(self.delimiter)}\r\n]*+"
        cell = re.compile(rf'"(?:[^"]|"")*+"|(?!"){plain}' if self.quoted else plain)
        row: _Row = []
        position = self.start
        while position < len(text):
            match = cell.match(text, position)
            end = match.end() if match else position
            if match is None or text[end : end + 1] not in (self.delimiter, "\r", "\n", ""):
                (line,) = line_numbers(text, [position])
                raise DocumentError(f"is not a table: line {line} has a quotation mark that does not end its cell")
            row.append(match.span())
            if text[end : end + 1] == self.delimiter:
                position = end + 1
                if position < len(text):
                    continue
                row.append((position, position))
            else:
                position = end + (2 if text.startswith("\r\n", end) else 1)
            yield row
            row = []

    def read(self, cell: str) -> str:
        """Read the text of a cell."""
        return cell[1:-1].replace('""', '"') if self.quoted and cell.startswith('"') else cell

    def write(self, text: str, previous: str) -> str:
        """Write a text as a cell, in quotation marks if it needs them or if the previous text had them."""
        if not self.quoted:
            return re.sub(r"[\t\r\n]+", " ", text)
        needs_marks = previous.startswith('"') or text.startswith('"') or re.search(rf"[{self.delimiter}\r\n]", text)
        return '"' + text.replace('"', '""') + '"' if needs_marks else text


def table_document(encoded: EncodedText, style: TableStyle, options: DocumentOptions) -> Document:
    """Make a document whose units are the cells of `options.column`. A row with text in `options.into` is kept.

    A column is given by a name in one of the first rows or, in a table without names, by number or letter. A new column
    becomes the last one; in that case a row with more cells than the headings is refused, and its line named. A blank
    line stays unchanged, and so does a row that is too short to have the column.
    """
    text = encoded.text
    rows = list(style.rows(text))
    columns = find_columns([[style.read(text[slice(*cell)]) for cell in row] for row in rows[:HEAD_ROWS]], options)
    top = rows[max(0, columns.first_row - 1)]
    wide = next((row for row in rows if len(row) > len(top)), None)
    if wide and columns.target >= len(top):
        (line,) = line_numbers(text, [wide[0][0]])
        row = "the first row" if columns.first_row < 2 else "the row of headings"
        raise DocumentError(
            f"has {len(wide)} cells in line {line}, but {len(top)} in {row}, so that a new column would not be below "
            "its heading; mend that line, or leave out --into"
        )
    body = [row for row in rows[columns.first_row :] if columns.source < len(row) and text[row[0][0] : row[-1][1]]]
    cells = [
        ColumnCell(style.read(text[slice(*row[columns.source])]), _existing(text, row, columns, style), f"line {line}")
        for row, line in zip(body, line_numbers(text, (row[0][0] for row in body)), strict=True)
    ]

    def write(texts: Sequence[str | None]) -> bytes:
        if not any(texts):
            return encoded.replaced(())
        replacements: list[Edit] = []
        if columns.target >= len(top) and columns.heading is not None:
            replacements.append(_in_column(top, columns.target, style.write(columns.heading, ""), style))
        for row, new in zip(body, texts, strict=True):
            if new is not None or columns.target >= len(row):
                previous = text[slice(*row[columns.source])]
                replacements.append(_in_column(row, columns.target, style.write(new or "", previous), style))
        return encoded.replaced(replacements)

    return column_document(cells, write, numbers=options.numbers)


def _existing(text: str, row: _Row, columns: Columns, style: TableStyle) -> str:
    if columns.target == columns.source or columns.target >= len(row):
        return ""
    return style.read(text[slice(*row[columns.target])]).strip()


def _in_column(row: _Row, column: int, cell: str, style: TableStyle) -> Edit:
    """Write a cell into its column. A row that is too short gets the missing cells before it."""
    if column < len(row):
        return Edit(*row[column], cell)
    end = row[-1][1]
    return Edit(end, end, style.delimiter * (column - len(row) + 1) + cell)


_DECLARED = re.compile(r'"?sep=([,;:|\t])"?(?:\r\n?|\n)', re.IGNORECASE)


def read_csv_document(data: bytes, options: DocumentOptions) -> Document:
    """Read one column of a table; see `table_document`.

    The separator is named by a first line `sep=;`, as in Excel. Otherwise it is a semicolon if the first line has no
    comma outside quotation marks, and else a comma.
    """
    encoded = decode_text(data, options.encoding)
    if declared := _DECLARED.match(encoded.text):
        return table_document(encoded, TableStyle(declared[1], quoted=True, start=declared.end()), options)
    first = re.sub(r'"[^"]*"', "", encoded.text.partition("\n")[0])
    delimiter = ";" if ";" in first and "," not in first else ","
    return table_document(encoded, TableStyle(delimiter, quoted=True), options)


def read_tsv_document(data: bytes, options: DocumentOptions) -> Document:
    """Read one column of a table; see `table_document`. Tabs and line ends in a translation become blanks."""
    return table_document(decode_text(data, options.encoding), TableStyle("\t", quoted=False), options)
