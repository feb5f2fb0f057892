"""The help of every command, on a narrow terminal and on a wide one."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer import rich_utils

from allyouneed.apps.cli import app
from allyouneed.apps.cli.help_layout import unwrap_paragraphs
from shell import refusal, run_here


def list_commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, (*words, name))
        else:
            yield (*words, name), command


COMMANDS = dict(list_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_a_help_page_has_option_names_in_full_their_meanings_and_examples(
    words: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", width)
    command = COMMANDS[words]
    lines = [line.rstrip() for line in run_here(*words, "--help").stdout.decode().splitlines()]
    page = " ".join(lines).replace(",", " ").split()
    for parameter in command.params:
        assert parameter.help, parameter.name
        if parameter.param_type_name == "option":
            assert {*parameter.opts, *parameter.secondary_opts} <= set(page)
    examples = [f" {line}" for line in command.help.splitlines() if line.startswith("  ")]
    assert examples
    assert set(examples) <= set(lines)
    assert max(map(len, lines)) <= width


def test_paragraphs_are_unwrapped_and_examples_are_not() -> None:
    text = """One line.

    Two lines
    of text.

      one example
      another
    """
    assert unwrap_paragraphs(text) == "One line.\n\nTwo lines of text.\n\n  one example\n  another"


def test_a_wrong_call_is_one_line_whatever_the_parser_says() -> None:
    assert "Choose from: ctranslate2," in refusal("export", "bundle", "folder")
