"""Which two columns of a table are the source and the target, by the names that its first row gives them."""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..language_tags import find_language

# Names of the two sides. Of several kinds in one heading the first has the pair: a question may have a source, too.
_SIDES = (
    (("source", "src", "source text", "source_text"), ("target", "tgt", "trg", "target text", "target_text")),
    (("question", "questions"), ("answer", "answers")),
    (("input", "inputs"), ("output", "outputs")),
    (("prompt",), ("completion", "response")),
    (("original",), ("translation",)),
)
_SAME_SIDE = [{name for kind in _SIDES[:1] for name in kind[side]} for side in (0, 1)]
_NUMBERS = ("id", "no")  # columns that number the rows, but Indonesian and Norwegian in a table of two
_LONGEST_NAME = 30  # characters of a heading; a first row with a longer text is none


class PairColumns(NamedTuple):
    """The two columns of a table that make the pairs, counted from 0.

    `heading` is the first row, if it names the columns; else it is empty, and the first row is a pair.
    """

    source: int
    target: int
    heading: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the heading calls the two; () without a heading."""
        return (self.heading[self.source], self.heading[self.target]) if self.heading else ()

    def describe(self) -> str:
        """What was taken for what, in a line; empty without a heading."""
        if not self.heading:
            return ""
        source, target = self.names
        others = [name for number, name in enumerate(self.heading) if number not in self[:2] and name]
        left_out = f"; not used: {', '.join(others)}" if others else ""
        return f'"{source}" is the source and "{target}" the target, by the first row{left_out}'


def find_columns(first: Sequence[str], columns: Sequence[str], path: Path, line: int = 1) -> PairColumns:
    """The two columns by the first row of a table; `columns` are their names or numbers, if the user gave any.

    Without them, a heading with the names of one source and one target, or of two languages, says which; and of a
    table of two columns the first is the source. `path` and `line` are where the row is, for messages. Refuses columns
    that are not there, and a table that leaves open which they are.
    """
    where = f"{path}, line {line}"
    names = tuple(" ".join(cell.split()) for cell in first)
    if columns and all(name.isdecimal() for name in columns):
        numbers = [int(name) for name in columns]
        if not 1 <= min(numbers) <= max(numbers) <= len(names):
            raise unclear_columns(
                f"{where} has {len(names)} columns; {list(columns)} were asked for, counted from 1", names
            )
        chosen = [names[number - 1] for number in numbers]
        return PairColumns(numbers[0] - 1, numbers[1] - 1, names if find_sides(chosen) else ())
    if columns:
        source, target = (_position(name, names) for name in columns)
        if source is None or target is None:
            missing = columns[0] if source is None else columns[1]
            raise unclear_columns(f'{where} is no heading with "{missing}"', names)
        return PairColumns(source, target, names)
    if len(names) < 2:
        raise DataError(
            f"{where} has no second column; expected a source and its translation in two of them{_parted(first, path)}"
        )
    if len(names) == 2:
        order = heading_order(names, where)
        return PairColumns(*order, names) if order else PairColumns(0, 1)
    if sides := find_sides(names):
        return PairColumns(names.index(sides[0]), names.index(sides[1]), names)
    raise unclear_columns(
        f"{where} has {len(names)} column{'s' * (len(names) != 1)}; expected source and target", names
    )


def _parted(first: Sequence[str], path: Path) -> str:
    """How to part the columns of a text file that seems to have blanks between them; nothing for another one."""
    text = "".join(first).strip()
    blanks = " {2,}" if re.search(r"\S {2,}\S", text) else " +" if len(text.split()) == 2 else ""
    files = shlex.join([str(path)]), shlex.quote(f"tabs-{path.stem}.tsv")
    return f"; put a tab between the columns: perl -pe 's/{blanks}/\\t/' {files[0]} > {files[1]}" if blanks else ""


def heading_order(cells: Sequence[str], where: str) -> tuple[int, int] | None:
    """The columns of source and target if two cells are their names, or those of two languages, or None.

    Refuses two names of the same side.
    """
    for side in _SAME_SIDE:
        if all(cell.strip().lower() in side for cell in cells):
            raise unclear_columns(
                f"{where} names one side twice; expected source and target, or no heading", cells, "1,2"
            )
    sides = find_sides(cells)
    return (cells.index(sides[0]), cells.index(sides[1])) if sides else None


def find_sides(names: Iterable[str]) -> tuple[str, str] | None:
    """Of some names that of the source and that of the target: src and tgt, or those of the only two languages.

    None if there is not one of each.
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
    """The error that two of these columns, or languages, are to be named; the command line adds how."""
    example = example or example_columns(names)
    seen = ", ".join(str(name) or "(empty)" for name in names[:12])
    return DataError(
        f"{message}; there are {seen[:200]}. Name two by name or number, source and target, such as {example}"
    ).mended_by("--columns", example)


def example_columns(names: Sequence[str]) -> str:
    """Two of these columns as `--columns` takes them: the languages among them, or the first two; else numbers."""
    languages = _languages(names)
    likely = languages if len(languages) > 1 else [name for name in names if name]
    is_heading = len(set(likely)) == len(likely) and all(
        name and len(name) <= _LONGEST_NAME and "," not in name and not name.isdecimal() for name in names if name
    )
    return ",".join(likely[:2]) if is_heading and len(likely) > 1 else "1,2"


def _position(name: str, names: Sequence[str]) -> int | None:
    """The column of this name; of one written with other capitals, if it is the only one."""
    if name in names:
        return names.index(name)
    same = [position for position, other in enumerate(names) if other.casefold() == name.casefold()]
    return same[0] if len(same) == 1 else None


def _languages(names: Sequence[str]) -> list[str]:
    """The names that are those of languages, each of another one."""
    tags = {name: find_language(str(name)) for name in names if len(names) == 2 or name.strip().lower() not in _NUMBERS}
    return [name for name, tag in tags.items() if tag and [*tags.values()].count(tag) == 1]


def _are_codes(cells: Sequence[str]) -> bool:
    """Whether two cells are codes of languages, be they common or not."""
    return len(cells) == len(set(cells)) == 2 and all(
        len(cell) == 2 and cell.isascii() and cell.isalpha() and cell.islower() for cell in cells
    )
