"""`allyouneed paper`: the table, an ablation and the figures."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from allyouneed.cli import app
from allyouneed.errors import InputError


def test_the_table_is_printed() -> None:
    result = CliRunner().invoke(app, ["paper"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["base", "63,082,496", "65", "M", "40,745", "127", "25.8"]
    assert any(line.startswith("big ") for line in lines)


def test_an_ablation_leaves_its_table(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(
        '[data]\ntrain = "reverse:train"\nvalid = "reverse:valid"\nlimit = 100\nvalid_limit = 10\n'
        'vocabulary = "characters"\n'
        "[model]\nd_model = 16\nd_ff = 16\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nmax_length = 32\n"
        "[train]\nsteps = 2\nbatch_tokens = 200\nwarmup = 1\n"
    )
    words = ["paper", "--ablate", str(tmp_path / "my.toml"), "--minutes", "0.05", "--rows", "base,E"]
    result = CliRunner().invoke(app, [*words, "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    table = (tmp_path / "out/table.md").read_text()
    assert [line.split()[1] for line in table.splitlines()[2:]] == ["base", "E"]


def test_figures_are_drawn(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "sentences").write_text("abcdefghij\n")
    words = ["paper", "--figures", str(saved), "--sentences", str(tmp_path / "sentences"), "--output", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("figure-3: ")
    assert (tmp_path / "figure-5.svg").is_file()


@pytest.mark.parametrize("words", [["--figures", "x"], ["--rows", "F"], ["--sentences", "x"]])
def test_a_call_that_makes_no_sense_is_refused(words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["paper", *words]).exception, InputError)
