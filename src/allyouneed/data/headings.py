"""Find the source and the target column of a table, by a heading among its first rows."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..config.language_tags import find_language
from ..errors import DataError
from .workbook import column_index, column_letters

# Names of the two sides. If a heading uses several of these pairs, the first pair counts: a question may also have a
# source.
_SIDES = (
    (("source", "src", "source text", "source_text"), ("target", "tgt", "trg", "target text", "target_text")),
    (("question", "questions"), ("answer", "answers")),
    (("input", "inputs"), ("output", "outputs")),
    (("prompt",), ("completion", "response")),
    (("original",), ("translation",)),
)
_SAME_SIDE = [{name for kind in _SIDES[:1] for name in kind[side]} for side in (0, 1)]
_NUMBERS = ("id", "no")  # columns of row numbers; in a table of two columns they are Indonesian and Norwegian
# Matches cells that cannot be names of columns: numbers, sentences and long texts.
_NO_NAME = re.compile(r"^\d+$|\s\S+\s.*[.!?…]$|[。！？]$|^.{31}")
_LONGEST_CODE = 3  # letters
_FEWEST_NUMBERS = 5  # numbers below a word that show that the word is the name of a column
_TITLE_ROWS = 10  # among these rows there may be titles with as many filled cells as the heading
HEAD_ROWS = 40  # rows that are searched for a heading and used to judge columns
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_LETTERS = re.compile("[A-Za-z]{1,3}")
_SENTENCE = re.compile(r"[.!?…。！？]['\"”’»)]*$")
_CODE = re.compile(r"[\d_/@\\]|\w[.:]\w")


class NumberedCells(NamedTuple):
    """A row: the number of its first line, its cells or the reason why it cannot be read, and its number of lines."""

    line: int
    cells: list[str] | str
    lines: int = 1


def readable(rows: Iterable[NumberedCells]) -> list[NumberedCells]:
    """Return the rows that have cells."""
    return [row for row in rows if not isinstance(row.cells, str)]


class PairColumns(NamedTuple):
    """The two columns of a table that make the pairs, counted from 0.

    `heading` is the row that names the columns; it is empty if there is none. `row` is the index, among the first rows,
    of the heading or else of the first pair. `line` is the line of that row, and `above` is the text above it.
    """

    source: int
    target: int
    heading: tuple[str, ...] = ()
    row: int = 0
    line: int = 1
    above: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the two columns in the heading; () without a heading."""
        return (self.heading[self.source], self.heading[self.target]) if self.heading else ()

    def describe(self) -> str:
        """Say in one line how the columns were read and what was left out; "" without a heading or text above it."""
        notes = []
        if self.heading:
            source, target = self.names
            row = "the first row" if self.line == 1 else f"line {self.line}"
            notes.append(f'"{source}" is the source and "{target}" the target, by {row}')
            others = [name for number, name in enumerate(self.heading) if number not in self[:2] and name]
            notes += [f"not used: {', '.join(others)}"] if others else []
        if self.above:
            notes.append(f"left out above: {', '.join(self.above):.80}")
        return "; ".join(notes)


def find_columns(rows: Sequence[NumberedCells], columns: Sequence[str], path: Path) -> PairColumns:
    """Find the two columns from the first rows of a table. `columns` are the names that the user gave, if any.

    A column can be given as a name, a number, or the letters of a spreadsheet. Without `columns`, a heading decides if
    it names one source and one target, or two languages; otherwise, a table with two columns has the source first.
    `path` is the file, for messages. Refuses columns that do not exist, and a table whose columns are unclear.
    """
    head = _Head(tuple(rows), path)
    return head.named(columns) if columns else head.recognized()


@dataclass(frozen=True, slots=True)
class _Head:
    """The first rows of a table: titles, perhaps a heading, and pairs."""

    rows: tuple[NumberedCells, ...]
    path: Path

    def cells(self, row: int) -> tuple[str, ...]:
        """Return the cells of a row, with runs of blanks reduced to one space."""
        return tuple(" ".join(cell.split()) for cell in self.rows[row].cells)

    def filled(self) -> list[int]:
        """Count the cells with text in each row."""
        return [sum(map(bool, self.cells(row))) for row in range(len(self.rows))]

    def sides(self, row: int, places: Sequence[int] = ()) -> tuple[str, str] | None:
        """Return the names of source and target if a row, or its cells at `places`, could be a heading.

        A heading has more filled cells than any row above it; the rows above are titles. Near the top, a row that
        contains the names themselves may be a heading even if a row above has as many cells, because such names are
        hardly ever pairs.
        """
        filled = self.filled()
        cells = self.cells(row)
        above = max([0, *filled[:row]])
        chosen = (
            [cell for place in places for cell in cells[place : place + 1]] if places else list(filter(None, cells))
        )
        sides = find_sides(chosen) if filled[row] >= above else None
        is_spelt = sides and row < _TITLE_ROWS and min(map(len, sides)) > _LONGEST_CODE
        return sides if filled[row] > above or is_spelt else None

    def begin(self) -> int:
        """Find the first row of the table: two or more filled cells, and over half as many as the fullest row has."""
        filled = self.filled()
        return next((row for row, count in enumerate(filled) if count > max(1, max(filled) / 2)), 0)

    def named(self, columns: Sequence[str]) -> PairColumns:
        """Find the columns with these names, letters or numbers."""
        for row in range(len(self.rows)):
            named = [_position(name, self.cells(row)) for name in columns]
            if (places := [place for place in named if place is not None]) == named:
                return self._found(places, row, heading=True)
        begin = self.begin()
        width = len(self.cells(begin))
        numbers = [column_number(name) for name in columns]
        if not 1 <= min(numbers) <= max(numbers) <= width:
            unnamed = [name for name in columns if _position(name, self.cells(begin)) is None]
            missing = next(name for name in unnamed if not 1 <= column_number(name) <= width)
            raise self._unclear(f'{self.path} has no column "{missing}"')
        places = [number - 1 for number in numbers]
        for row in range(len(self.rows)):
            if self.sides(row, places):
                return self._found(places, row, heading=True)
        is_heading = begin > 0 or self.names_numbers(begin) or self.stands_apart(begin, places)
        return self._found(places, begin, heading=is_heading)  # any titles are above a heading

    def names_numbers(self, row: int) -> bool:
        """Return True if a cell with letters, such as the heading ID, has only numbers or dates below it."""
        below = [self.cells(other) for other in range(row + 1, len(self.rows))]
        for place, name in enumerate(self.cells(row)):
            values = [cells[place] for cells in below if place < len(cells) and cells[place]]
            if len(values) >= _FEWEST_NUMBERS and _has_letter(name) and not any(map(_has_letter, values)):
                return True
        return False

    def stands_apart(self, row: int, places: Sequence[int]) -> bool:
        """Return True if both cells of a row look like names, and the cells below them do not.

        The cells below do not look like names if they are in small letters, have digits, or are sentences.
        """
        below = [self.cells(other) for other in range(row + 1, len(self.rows))]
        columns = [[cells[place] for cells in below if cells[place : place + 1] not in ((), ("",))] for place in places]
        return all(
            len(values) >= _FEWEST_NUMBERS and _stands_apart(self.cells(row)[place], values)
            for place, values in zip(places, columns, strict=True)
        )

    def recognized(self) -> PairColumns:
        """Find the columns by a heading, or take the only two columns."""
        begin = self.begin()
        where = f"{self.path}, line {self.rows[begin].line}"
        used = [place for place in range(len(self.cells(begin))) if self._is_used(place)]
        if len(used) < 2:
            if used and len(self.cells(begin)) > 1:
                raise DataError(
                    f"{where}: in its first {len(self.rows)} rows only column {column_letters(used[0])} has text; "
                    "the targets are empty; expected a source and its translation in two columns"
                )
            parted = _parted(self.rows[begin].cells, self.path)
            raise DataError(
                f"{where} has no second column; expected a source and its translation in two of them{parted}"
            )
        if len(used) == 2:
            heading_order([self.cells(begin)[place] for place in used], where)  # refuses two names for one side
        for row in range(len(self.rows)):
            if sides := self.sides(row):
                return self._found([self.cells(row).index(name) for name in sides], row, heading=True)
        if len(used) == 2:
            return self._found(used, begin, heading=self.stands_apart(begin, used))
        raise self._unclear(f"{where} has {len(self.cells(begin))} columns; expected source and target")

    def _is_used(self, place: int) -> bool:
        """Return True if a column has text in the first row of the table, or in more than a third of all rows."""
        cells = [self.cells(row)[place : place + 1] for row in range(len(self.rows))]
        return any(cells[self.begin()]) or 3 * sum(map(any, cells)) > len(cells)

    def _found(self, places: Sequence[int], row: int, *, heading: bool) -> PairColumns:
        above = tuple(cell for one in range(row) for cell in self.cells(one) if cell)
        source, target = places
        return PairColumns(source, target, self.cells(row) if heading else (), row, self.rows[row].line, above)

    def _unclear(self, message: str) -> DataError:
        names, *rows = map(self.cells, range(self.begin(), len(self.rows)))
        example = example_columns(names, rows, letters=self.path.suffix.lower() in SPREADSHEETS)
        return unclear_columns(message, names, example)


def _parted(first: Sequence[str], path: Path) -> str:
    """Advise how to separate the columns, if a text file seems to use blanks; otherwise return ""."""
    text = "".join(first).strip()
    blanks = " {2,}" if re.search(r"\S {2,}\S", text) else " +" if len(text.split()) == 2 else ""
    files = shlex.join([str(path)]), shlex.quote(f"tabs-{path.stem}.tsv")
    return f"; put a tab between the columns: perl -pe 's/{blanks}/\\t/' {files[0]} > {files[1]}" if blanks else ""


def heading_order(cells: Sequence[str], where: str) -> tuple[int, int] | None:
    """Find the source and target columns if two cells name the sides or two languages; otherwise return None.

    Refuses two names for the same side.
    """
    for side in _SAME_SIDE:
        if all(cell.strip().lower() in side for cell in cells):
            raise unclear_columns(
                f"{where} names one side twice; expected source and target, or no heading", cells, "1,2"
            )
    sides = find_sides(cells)
    return (cells.index(sides[0]), cells.index(sides[1])) if sides else None


def find_sides(names: Iterable[str]) -> tuple[str, str] | None:
    """Find the names of the source and the target, such as src and tgt, or the only two languages.

    Returns None unless there is exactly one name for each side.
    """
    names = list(names)
    plain = {str(name).strip().lower(): name for name in names}
    for kind in _SIDES:
        sources, targets = ([plain[name] for name in side if name in plain] for side in kind)
        if len(sources) == len(targets) == 1:
            return sources[0], targets[0]
    if len(languages := _languages(names)) == 2 or _are_codes(languages := names):
        return languages[0], languages[1]
    return None


def unclear_columns(message: str, names: Sequence[str], example: str = "") -> DataError:
    """Make an error that asks for two of these columns or languages. The command line adds how to name them."""
    example = example or example_columns(names)
    seen = ", ".join(str(name) or "(empty)" for name in names[:12])
    return DataError(
        f"{message}; there are {seen[:200]}. Name two, source and target, by name, letter or number, such as {example}"
    ).mended_by("--columns", example)


def example_columns(names: Sequence[str], rows: Sequence[Sequence[str]] = (), *, letters: bool = False) -> str:
    """Suggest two of these columns, in the form that `--columns` takes.

    If some of the names are languages, two of these are suggested; otherwise the columns whose texts in `rows` are
    longest and most varied. A column without a unique name is given by its number or, with `letters`, by its letters.
    """
    languages = [names.index(name) for name in _languages(names)]
    places = [place for place, name in enumerate(names) if name] or [*range(len(names))]
    places.sort(key=lambda place: -_text_length(row[place] for row in rows if place < len(row)))
    likely = languages[:2] if len(languages) > 1 else sorted(places[:2])
    if len(likely) < 2:
        likely = [0, 1]
    chosen = [names[place] for place in likely if place < len(names)]
    is_heading = not any(map(_NO_NAME.search, names)) and all(
        names.count(name) == 1 and "," not in name for name in chosen
    )
    if is_heading and len(chosen) == 2:
        return ",".join(chosen)
    return ",".join(column_letters(place) if letters else str(place + 1) for place in likely)


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _stands_apart(name: str, values: Iterable[str]) -> bool:
    if not name or _NO_NAME.search(name) or _SENTENCE.search(name):
        return False
    are_small = all(value[0].islower() for value in values)
    are_numbered = all(map(_has_digit, values)) and not _has_digit(name)
    return all(map(_SENTENCE.search, values)) or (name[0].isupper() and are_small) or are_numbered


def _text_length(cells: Iterable[str]) -> int:
    """Count the letters of all different texts in a column, ignoring addresses, keys and codes."""
    words = (word for cell in {*cells} for word in cell.split() if not _CODE.search(word))
    return sum(sum(map(str.isalpha, word)) for word in words)


def column_number(name: str) -> int:
    """Return the number of a column, counted from 1, given as a number or as spreadsheet letters; otherwise 0."""
    if name.isdecimal():
        return int(name)
    return column_index(name) + 1 if _LETTERS.fullmatch(name) else 0


def _position(name: str, names: Sequence[str]) -> int | None:
    """Find the column with exactly this name, or else the only column whose name differs just in capitals."""
    if name in names:
        return names.index(name)
    same = [position for position, other in enumerate(names) if other.casefold() == name.casefold()]
    return same[0] if len(same) == 1 else None


def _languages(names: Sequence[str]) -> list[str]:
    """Return the names that are languages. If two names mean the same language, only one is returned."""
    tags = {name: find_language(str(name)) for name in names if len(names) == 2 or name.strip().lower() not in _NUMBERS}
    return [name for name, tag in tags.items() if tag and [*tags.values()].count(tag) == 1]


def _are_codes(cells: Sequence[str]) -> bool:
    """Return True if two cells are codes of languages, common or rare."""
    return len(cells) == len(set(cells)) == 2 and all(
        len(cell) == 2 and cell.isascii() and cell.isalpha() and cell.islower() for cell in cells
    )
