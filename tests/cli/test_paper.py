"""`allyouneed paper`: the table, an ablation and the figures."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import allyouneed.apps.paper
from allyouneed.apps.cli import app
from allyouneed.apps.paper import ROWS, AblationResult
from allyouneed.config import Recipe
from allyouneed.errors import InputError, OutputError


def test_the_table_is_printed() -> None:
    result = CliRunner().invoke(app, ["paper"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["base", "63,082,496", "65", "M", "40,745", "127", "25.8"]
    assert any(line.startswith("big ") for line in lines)


def test_an_ablation_leaves_its_table_and_its_picture(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(
        '[data]\ntrain = "reverse:train"\nvalid = "reverse:valid"\nmax_train_samples = 100\nmax_valid_samples = 10\n'
        'vocabulary = "characters"\n'
        "[model]\nd_model = 8\nd_ff = 8\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nmax_length = 32\n"
        "[train]\nsteps = 2\nbatch_tokens = 200\nwarmup = 1\ntensorboard = false\n"
    )
    words = ["paper", "--ablate", str(tmp_path / "my.toml"), "--minutes", "0.05", "--rows", "base,B16"]
    result = CliRunner().invoke(app, [*words, "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    table = (tmp_path / "out/table.md").read_text().splitlines()
    assert [line.split()[1] for line in table[2:]] == ["base", "B16"]
    assert [cell.strip() for cell in table[3].split("|")[2:9]] == ["1", "8", "8", "2", "1", "0.1", "0.1"]
    assert table[3] in result.stdout
    assert "against base" in (tmp_path / "out/table.svg").read_text()
    assert isinstance(CliRunner().invoke(app, [*words, "--output", str(tmp_path / "out")]).exception, OutputError)


def test_a_file_of_pairs_gets_a_small_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes: list[Recipe] = []

    def ablate(recipe: Recipe, output: Path, **_: object) -> list[AblationResult]:
        recipes.append(recipe)
        output.mkdir()
        return [AblationResult(ROWS[0], recipe, 1, 2.0, 3.0, 4.0)]

    monkeypatch.setattr(allyouneed.apps.paper, "ablate", ablate)
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    words = ["paper", "--ablate", str(tmp_path / "pairs.tsv"), "--output", str(tmp_path / "out")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert (recipes[0].data.train, recipes[0].model.d_model) == (str(tmp_path / "pairs.tsv"), 64)


def test_figures_are_drawn(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "sentences").write_text("abcdefghij\n")
    words = [
        "paper",
        "--figures",
        str(saved),
        "--sentences",
        str(tmp_path / "sentences"),
        "--output",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("figure-3: ")
    assert (tmp_path / "out/figure-5.svg").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["--figures", "x"], ["--rows", "F"], ["--sentences", "x"], ["--minutes", "1"], ["--output", "x"],
        ["--figures", "x", "--sentences", "x", "--rows", "base"],
    ],
)  # fmt: skip
def test_a_call_that_makes_no_sense_is_refused(words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["paper", *words]).exception, InputError)
