"""A column of a table in a text file (.csv, .tsv): its cells are translated in their place, or into another column.

Python's csv module does not say where a cell stands, so that here the cells are found by a pattern (RFC 4180); all
bytes besides the cells that get a translation stay.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...errors import DocumentError
from .encoded_text import Edit, EncodedText, decode_text, line_numbers
from .string_unit import StringUnit, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation

_Cell = tuple[int, int]  # its characters, with quotation marks
_Row = list[_Cell]


class TableStyle(NamedTuple):
    """What is between the cells of a row, whether cells may be in quotation marks, and where the first row starts."""

    delimiter: str
    quoted: bool
    start: int = 0

    def rows(self, text: str) -> Iterator[_Row]:
        """The cells of each row. Refuses, by its line, a quotation mark that is not closed at the end of its cell."""
        plain = rf"[^{re.escape(self.delimiter)}\r\n]*+"
        cell = re.compile(rf'"(?:[^"]|"")*+"|(?!"){plain}' if self.quoted else plain)
        row: _Row = []
        position = self.start
        while position < len(text):
            match = cell.match(text, position)
            end = match.end() if match else position
            if match is None or text[end : end + 1] not in (self.delimiter, "\r", "\n", ""):
                (line,) = line_numbers(text, [position])
                raise DocumentError(f"is no table: line {line} has a quotation mark that does not end its cell")
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
        """The text of a cell."""
        return cell[1:-1].replace('""', '"') if self.quoted and cell.startswith('"') else cell

    def write(self, text: str, previous: str) -> str:
        """A text as a cell, in quotation marks if it needs them or the previous one had them."""
        if not self.quoted:
            return re.sub(r"[\t\r\n]+", " ", text)
        needs_marks = previous.startswith('"') or text.startswith('"') or re.search(rf"[{self.delimiter}\r\n]", text)
        return '"' + text.replace('"', '""') + '"' if needs_marks else text


class _Columns(NamedTuple):
    """Columns by their place, counted from 0: the one to translate, and the one for the translations."""

    source: int
    target: int
    heading: str | None  # of a new column, if the table has headings
    first_row: int  # 1 after a row of headings


def table_document(encoded: EncodedText, style: TableStyle, options: DocumentOptions) -> Document:
    """The document whose units are in the cells of `options.column`; one whose cell of `options.into` is full is kept.

    A column is the name in the first row, or a number counted from 1 in a table without names. A new column becomes the
    last, and a row with more cells than the first is refused by its line. A blank line stays as it is, as does a row
    that is too short to have the column.
    """
    text = encoded.text
    rows = list(style.rows(text))
    width = len(rows[0]) if rows else 0
    columns = _find_columns([style.read(text[slice(*cell)]) for cell in rows[0]] if rows else [], options)
    wide = next((row for row in rows if len(row) > width), None)
    if wide and columns.target >= width:
        (line,) = line_numbers(text, [wide[0][0]])
        raise DocumentError(
            f"has {len(wide)} cells in line {line}, but {width} in the first row, so that a new column would not be "
            "below its heading; mend that line, or leave out --into"
        )
    body = [row for row in rows[columns.first_row :] if columns.source < len(row) and text[row[0][0] : row[-1][1]]]
    cells = [text[slice(*row[columns.source])] for row in body]
    strings = [StringUnit(style.read(cell), numbers=options.numbers) for cell in cells]
    existing = [_existing(text, row, columns, style) for row in body]
    lines = line_numbers(text, (row[0][0] for row in body))
    units = [
        TranslationUnit(text=string.string, key=f"line {line}", translation=there)
        if there
        else string.unit(f"line {line}")
        if string.has_words
        else None
        for string, there, line in zip(strings, existing, lines, strict=True)
    ]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        if not any(translations):
            return encoded.replaced(())
        remaining = iter(translations)
        replacements: list[Edit] = []
        if columns.target >= width and columns.heading is not None:
            replacements.append(_in_column(rows[0], columns.target, style.write(columns.heading, ""), style))
        for row, cell, string, unit in zip(body, cells, strings, units, strict=True):
            new = string.string if unit is None and is_same_in_all_languages(string.string) else None
            if unit and (translation := next(remaining)) and unit.translation is None:
                new = string.translated(translation)
            if new is not None or columns.target >= len(row):
                replacements.append(_in_column(row, columns.target, style.write(new or "", cell), style))
        return encoded.replaced(replacements)

    return Document(tuple(unit for unit in units if unit), write)


def _existing(text: str, row: _Row, columns: _Columns, style: TableStyle) -> str:
    if columns.target == columns.source or columns.target >= len(row):
        return ""
    return style.read(text[slice(*row[columns.target])]).strip()


def _in_column(row: _Row, column: int, cell: str, style: TableStyle) -> Edit:
    """A cell in its column; a row that is too short gets the cells before it."""
    if column < len(row):
        return Edit(*row[column], cell)
    end = row[-1][1]
    return Edit(end, end, style.delimiter * (column - len(row) + 1) + cell)


def _find_columns(first: Sequence[str], options: DocumentOptions) -> _Columns:
    names = [name.strip() for name in first]
    if not options.column:
        raise DocumentError(
            f"is a table with the columns {', '.join(names) or 'none'}; say which to translate with --column, "
            "by name, or by number if it has no names"
        )
    if options.column.isdecimal():
        source = int(options.column) - 1
        target = int(options.into) - 1 if options.into.isdecimal() else source
        if options.into and not options.into.isdecimal():
            raise DocumentError(
                f"has no names of columns if --column is a number; --into {options.into} must be one too"
            )
        if not (0 <= source < len(names) and 0 <= target <= len(names)):
            raise DocumentError(f"has {len(names)} columns, counted from 1; --column or --into is none of them")
        return _Columns(source, target, None, 0)
    if options.column not in names:
        raise DocumentError(f'has no column "{options.column}"; it has {", ".join(names) or "none"}')
    into = options.into or options.column
    target = names.index(into) if into in names else len(names)
    return _Columns(names.index(options.column), target, into, 1)


_DECLARED = re.compile(r'"?sep=([,;:|\t])"?(?:\r\n?|\n)', re.IGNORECASE)


def read_csv_document(data: bytes, options: DocumentOptions) -> Document:
    """One column of a table; see `table_document`.

    Cells are parted by what a first line `sep=;` says, as Excel reads it, else by semicolons if the first line has no
    comma outside of quotation marks.
    """
    encoded = decode_text(data, options.encoding)
    if declared := _DECLARED.match(encoded.text):
        return table_document(encoded, TableStyle(declared[1], quoted=True, start=declared.end()), options)
    first = re.sub(r'"[^"]*"', "", encoded.text.partition("\n")[0])
    delimiter = ";" if ";" in first and "," not in first else ","
    return table_document(encoded, TableStyle(delimiter, quoted=True), options)


def read_tsv_document(data: bytes, options: DocumentOptions) -> Document:
    """One column of a table; see `table_document`. Tabs and line ends in a translation become blanks."""
    return table_document(decode_text(data, options.encoding), TableStyle("\t", quoted=False), options)
