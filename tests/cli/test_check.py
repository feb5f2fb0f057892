"""`allyouneed check`: words, exit codes and JSON."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from allyouneed.apps import check
from allyouneed.apps.cli import app
from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from conftest import Demo


@pytest.mark.slow
def test_the_demo_is_sound_and_remembered(demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "probes.txt").write_text("1845-01-05\n1996-09-08\n")
    folder = str(demo.folder / "runs/dates")
    result = CliRunner().invoke(app, ["check", folder, "--save-baseline", str(tmp_path / "probes.txt")])
    assert result.exit_code == 0, result.output
    assert "2 translations equal" in result.stdout
    assert "0 of 1,000 held-out pairs" in result.stdout


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every model with the shorter and fewer sentences of a large one."""
    monkeypatch.setattr(check, "LARGE", 0)


def test_a_spoilt_model_fails_and_json_says_why(saved: Path, quick: None) -> None:
    bundle = Bundle.load(saved)
    with torch.no_grad():
        bundle.model.get_parameter("encoder.layers.0.feed_forward.inner.bias").fill_(-100.0)
    bundle.save(saved)
    result = CliRunner().invoke(app, ["check", str(saved), "--json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["sound"] is False
    assert [one["check"] for one in report["checks"] if one["passed"] is False] == ["alive"]


def test_an_untrained_recipe_is_checked(quick: None) -> None:
    result = CliRunner().invoke(app, ["check", "--config", "dates"])
    assert result.exit_code == 0, result.output
    assert "memorize" in result.stdout


def test_the_baseline_is_not_made_from_itself(saved: Path) -> None:
    check.save_baseline(Bundle.load(saved), saved, ["abc"])
    before = (saved / "baseline.json").read_bytes()
    result = CliRunner().invoke(app, ["check", str(saved), "--save-baseline", str(saved / "baseline.json")])
    assert isinstance(result.exception, InputError)
    assert "stored baseline" in str(result.exception)
    assert (saved / "baseline.json").read_bytes() == before


@pytest.mark.parametrize("words", [[], ["runs/x", "--config", "dates"], ["--config", "dates", "--save-baseline", "x"]])
def test_a_call_that_makes_no_sense_is_refused(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["check", *words])
    assert isinstance(result.exception, InputError)
