"""The help of every command, on a narrow terminal and on a wide one, and settings among the arguments."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from allyouneed.apps.cli import app
from allyouneed.apps.cli.command import help_text
from shell import refusal, run_here


def list_commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, (*words, name))
        else:
            yield (*words, name), command


def help_page(*words: str, width: int) -> list[str]:
    return CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(width)}).output.splitlines()


COMMANDS = dict(list_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_a_help_page_has_option_names_in_full_their_meanings_and_examples(words: tuple[str, ...], width: int) -> None:
    command = COMMANDS[words]
    lines = [line.rstrip() for line in help_page(*words, width=width)]
    page = " ".join(lines).replace(",", " ").split()
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        assert parameter.help, parameter.name
        if parameter.param_type_name == "option":
            assert {*parameter.opts, *parameter.secondary_opts} <= set(page)
    examples = [f"  {line}" for line in command.help.splitlines() if line.startswith("  ")]
    assert examples
    assert set(examples) <= set(lines)
    assert max(map(len, lines)) <= width


def test_paragraphs_are_unwrapped_and_examples_are_not() -> None:
    text = """One line.

    Two lines
    of text.

    For example:
      one
      another
    """
    assert help_text(text) == "One line.\n\nTwo lines of text.\n\n\b\nFor example:\n  one\n  another"


@pytest.mark.parametrize("command", ["translate", "evaluate", "explain", "serve"])
def test_the_help_of_a_search_fits_two_screens(command: str) -> None:
    assert len(help_page(command, width=100)) <= 50


def test_all_commands_together_have_few_options() -> None:
    program: Any = typer.main.get_command(app)
    options = [
        parameter
        for command in (program, *COMMANDS.values())
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden
    ]
    assert len(options) + len(COMMANDS) + 3 <= 185  # and --help of each, of the program and of its two groups


def test_settings_of_the_search_are_among_the_arguments(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("ab\n")
    words = ["decode.max_length=3", tmp_path / "in", "decode.nbest=2"]
    assert run_here("translate", saved, *words).stdout.rstrip(b"\n").count(b"\t") == 3  # two texts and their scores
    same = ["--max-length", "3", tmp_path / "in", "--nbest", "2"]
    assert run_here("translate", saved, *words).stdout == run_here("translate", saved, *same).stdout
    assert b"decode.beam=2" in run_here("translate", saved, "--", "decode.beam=2").stderr  # a text
    assert '"alpha"' in refusal("evaluate", saved, "decode.alhpa=1")
    assert "beam must" in refusal("translate", saved, tmp_path / "in", "decode.beam=wide")


def test_an_unknown_option_names_the_setting_that_is_meant(saved: Path) -> None:
    assert "decode.length_penalty=VALUE" in refusal("translate", saved, "--length-penalty", "plain")
    assert "decode.recase=VALUE" in refusal("serve", saved, "--no-recase")
    assert "train.learning_rate=VALUE" in refusal("train", "dates", "--lr", "1")
    assert "?" not in refusal("info", saved, "--alpha", "1")


def test_a_wrong_call_is_one_line_whatever_the_parser_says() -> None:
    assert "Choose from: ctranslate2," in refusal("export", "bundle", "folder")
