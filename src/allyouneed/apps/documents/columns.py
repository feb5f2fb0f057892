"""The column of a table to translate, and the column for the translations, in all kinds of table files."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...data.headings import HEAD_ROWS, column_number, example_columns
from ...errors import DocumentError
from .string_unit import StringUnit, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation


class Columns(NamedTuple):
    """The column to translate and the column for the translations, counted from 0."""

    source: int
    target: int
    heading: str | None  # of a new column, if the table has headings
    first_row: int  # the row below the headings


class ColumnCell(NamedTuple):
    """A cell to translate: its text, its present translation, its place, and the reasons to review its translation."""

    source: str
    existing: str
    key: str
    reasons: tuple[str, ...] = ()


def find_columns(rows: Sequence[Sequence[str]], options: DocumentOptions, *, letters: bool = False) -> Columns:
    """Find the columns that the options name: by names in one of the first `rows`, by number or by letter.

    Refuses columns that do not exist. The message proposes a column by its name or number or, with `letters`, its
    letter.
    """
    head = [[" ".join(cell.split()) for cell in row] for row in rows[:HEAD_ROWS]]
    column, into = options.column, options.into or options.column
    for number, names in enumerate(head):
        if column and column in names and not column.isdecimal():
            target = names.index(into) if into in names else len(names)
            return Columns(names.index(column), target, into, number + 1)
    widest = max(head, key=lambda row: sum(map(bool, row)), default=[])
    source, target = column_number(column), column_number(into)
    if 1 <= source <= len(widest) and 1 <= target <= len(widest) + 1:
        return Columns(source - 1, target - 1, None, 0)
    seen = f"{', '.join(name or '(empty)' for name in widest):.200}" or "none"
    if not column:
        message = f"is a table with the columns {seen}; say which to translate with --column, by name, letter or number"
    elif 1 <= source <= len(widest) and not into.isdecimal():
        message = f"has no names of columns if --column is {column}; --into {into} must be one too"
    elif column.isdecimal():
        message = f"has {len(widest)} columns, counted from 1; --column or --into is none of them"
    else:
        message = f'has no column "{column}"; it has {seen}'
    if 1 <= source <= len(widest):
        raise DocumentError(message).mended_by("--into", str(len(widest) + 1))
    rows = head[head.index(widest) + 1 :] if widest else []
    example, _, _ = example_columns(widest, rows, letters=letters).partition(",")
    raise DocumentError(message).mended_by(*(["--column", example] if widest else []))


def column_document(
    cells: Sequence[ColumnCell], write: Callable[[Sequence[str | None]], bytes], *, numbers: bool
) -> Document:
    """Make a document with a unit for each cell that contains words. A cell that already has a translation is kept.

    `write` makes the file, given a text for each cell, or None for a cell that stays as it is.
    """
    strings = [StringUnit(cell.source, numbers=numbers) for cell in cells]
    units = [
        TranslationUnit(text=cell.source, key=cell.key, translation=cell.existing)
        if cell.existing
        else string.unit(cell.key, cell.reasons)
        if string.has_words
        else None
        for cell, string in zip(cells, strings, strict=True)
    ]

    def write_units(translations: Sequence[UnitTranslation | None]) -> bytes:
        remaining = iter(translations)
        texts: list[str | None] = []
        for string, unit in zip(strings, units, strict=True):
            text = string.string if unit is None and is_same_in_all_languages(string.string) else None
            if unit and (translation := next(remaining)) and unit.translation is None:
                text = string.translated(translation)
            texts.append(text)
        return write(texts if any(translations) else [None] * len(texts))

    return Document(tuple(unit for unit in units if unit), write_units)
