"""The page of commands, docs/commands.md, written from the help of the program: python docs/make/commands.py"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from allyouneed.apps.cli import app

EXAMPLES = "\b"  # begins them in the help
PAGE = Path(__file__).parent.parent / "commands.md"
_BEGINNING = """\
# Commands

What `allyouneed COMMAND --help` prints, without its examples. Every command has `--debug`, which prints the traceback
of an error; `allyouneed --version` prints the version. [Training](training.md#stopping-and-resuming) lists the exit
codes.
"""
_SEARCH = "Every [setting of the search](settings.md#decode-the-search) can be among the arguments."


def page() -> str:
    """The page: each command with its usage and a table of its arguments and options."""
    program: Any = typer.main.get_command(app)
    return "\n".join([_BEGINNING, *_describe(program, program.context_class(program, info_name="allyouneed"))])


def _describe(group: Any, parent: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        context = command.context_class(command, info_name=name, parent=parent)
        yield f"## {context.command_path}\n" if parent.parent is None else f"### {context.command_path}\n"
        yield f"{_plain(command.help.partition(EXAMPLES)[0].strip())}\n"
        if hasattr(command, "commands"):
            yield from _describe(command, context)
            continue
        yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        rows = [
            parameter.get_help_record(context)
            for parameter in command.params
            if not getattr(parameter, "hidden", False)
        ]
        yield "\n".join(
            ["| | |", "|---|---|", *(f"| `{_cell(names)}` | {_cell(_plain(text))} |" for names, text in rows)]
        )
        yield f"\n{_SEARCH}\n" if command.takes_settings() else ""


def _plain(text: str) -> str:
    """Help with the escapes of Markdown."""
    return re.sub(r"(?=[*<])", r"\\", text)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
