"""The page of commands, docs/commands.md, written from the help of the program: python docs/make/commands.py"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from allyouneed.apps.cli import app
from allyouneed.config import DecodeConfig

PAGE = Path(__file__).parent.parent / "commands.md"
_BEGINNING = """\
# Commands

What `allyouneed COMMAND --help` prints, without its examples. Every command has `--debug`, which prints the traceback
of an error; `allyouneed --version` prints the version. [Training](training.md#stopping-and-resuming) lists the exit
codes.
"""
_SEARCH = "The [settings of the search](settings.md#decode-the-search) are options, too: `--beam` and others."


def page() -> str:
    """The page: each command with its usage and a table of its arguments and options."""
    program: Any = typer.main.get_command(app)
    return "\n".join([_BEGINNING, *_describe(program, program.context_class(program, info_name="allyouneed"))])


def _describe(group: Any, parent: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        context = command.context_class(command, info_name=name, parent=parent)
        yield f"## {context.command_path}\n" if parent.parent is None else f"### {context.command_path}\n"
        yield f"{_plain(command.help.partition('[bold]')[0].strip())}\n"
        if hasattr(command, "commands"):
            yield from _describe(command, context)
            continue
        yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        search = {field: f"--{field.replace('_', '-')}" for field in DecodeConfig.__dataclass_fields__}
        rows = [
            parameter.get_help_record(context)
            for parameter in command.params
            if parameter.name != "debug" and search.get(parameter.name) not in parameter.opts
        ]
        yield "\n".join(
            ["| | |", "|---|---|", *(f"| `{_cell(names)}` | {_cell(_plain(text))} |" for names, text in rows)]
        )
        yield f"\n{_SEARCH}\n" if any(parameter.name == "beam" for parameter in command.params) else ""


def _plain(text: str) -> str:
    """Help without the escapes of Rich, and with those of Markdown."""
    return re.sub(r"(?=[*<])", r"\\", text.replace("\\[", "["))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
