"""The layout of help pages: no option name is truncated, and paragraphs are wrapped to the width of the terminal."""

import inspect
import re
from typing import Any

from rich.table import Table
from rich.text import Text
from typer import rich_utils


class OptionsTable(Table):
    """The table of options on a help page: all names of an option in one column, that which switches it off below.

    Typer's own table has a column for each kind of name, and truncates the names if the columns become too narrow.
    """

    def add_row(self, *cells: Any, **_: Any) -> None:
        """Add a row of [required mark], name, short name, off, short off, type and meaning; or another row."""
        if len(cells) < 6:
            super().add_row(*cells)
            return
        *mark, name, short, off, _short_off, kind, meaning = cells
        names = Text("\n").join(part for part in (Text(", ").join(filter(None, (short, name))), off) if part)
        is_switch = str(kind) == "<bool>"  # it takes no value
        super().add_row(*mark, names, "" if is_switch else kind, meaning)
        self.columns[len(mark)].no_wrap = True


def install_layout() -> None:
    """Let Typer use `OptionsTable` for its help pages."""
    vars(rich_utils)["Table"] = OptionsTable


def unwrap_paragraphs(text: str) -> str:
    """A docstring with each paragraph on one line; indented lines stay as they are."""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.cleandoc(text))
