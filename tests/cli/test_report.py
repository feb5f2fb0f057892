"""`allyouneed report`: one run, or two compared."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allyouneed import fit
from allyouneed.apps.cli import app
from allyouneed.errors import ConfigError, InputError, OutputError
from runs import TINY

RECIPE = replace(TINY, data=replace(TINY.data, test="dates:test"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two runs that hold out the same test pairs, and a run that holds out none."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        fit(replace(RECIPE, train=replace(TINY.train, seed=seed)), folder / f"run{seed}")
    fit(TINY, folder / "untested")
    return folder


@pytest.mark.slow
def test_the_report_of_a_run_is_written_again(runs: Path, tmp_path: Path) -> None:
    page = runs / "run1/report.html"
    page.write_text("old")
    result = CliRunner().invoke(app, ["report", str(runs / "run1")])
    assert result.exit_code == 0, result.output
    assert str(page) in result.stderr
    assert "Gradient norm" in page.read_text()
    words = ["report", str(runs / "run1"), "--output", str(tmp_path / "page.html")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert isinstance(CliRunner().invoke(app, words).exception, OutputError)


@pytest.mark.parametrize(("options", "pairs"), [([], "validation pairs"), (["--test"], "20 test pairs")])
def test_two_runs_are_compared(runs: Path, tmp_path: Path, options: list[str], pairs: str) -> None:
    path = tmp_path / "page.html"
    result = CliRunner().invoke(
        app, ["report", str(runs / "run1"), str(runs / "run2"), "--output", str(path), *options]
    )
    assert result.exit_code == 0, result.output
    assert f"{pairs}, " in result.stderr
    assert "train.seed" in path.read_text()


def test_three_runs_are_a_table_of_seeds(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    words = [str(runs / name) for name in ("run1", "run2", "untested")]
    result = CliRunner().invoke(app, ["report", *words, "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert f"{words[0]}, 2 seeds" in result.stderr
    assert "±" in path.read_text()


def test_a_call_that_makes_no_sense_is_refused(runs: Path, tmp_path: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["report", str(runs / "run1"), "--test"]).exception, InputError)
    assert isinstance(CliRunner().invoke(app, ["report", str(tmp_path)]).exception, ConfigError)
    words = ["report", str(runs / "run1"), str(runs / "untested"), "--test", "--output", str(tmp_path / "page.html")]
    assert isinstance(CliRunner().invoke(app, words).exception, ConfigError)
