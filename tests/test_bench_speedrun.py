"""The benchmark of time to quality: the command that it runs, and what it reads from a curve."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def speedrun(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "speedrun", raising=False)
    return __import__("speedrun")


def test_a_mark_is_reached_by_the_first_model_that_has_it(speedrun: ModuleType) -> None:
    curve = [{"minutes": 2.0, "bleu": 29.9}, {"minutes": 4.0, "bleu": 35.0}, {"minutes": 6.0, "bleu": 34.0}]
    assert speedrun.reached(curve) == {"30": 4.0, "35": 4.0, "38": None}


def test_the_command_validates_as_often_as_there_are_points_unless_a_setting_says_otherwise(
    speedrun: ModuleType,
) -> None:
    command = speedrun.train_command(Path("raw"), 6.0, ["train.steps=1000"], 8)
    assert command[:5] == ["allyouneed", "train", "multi30k-en-de", "--minutes", "6"]
    assert {"data.data_dir=raw", "train.validate_every=125", "train.steps=1000"} <= set(command)
    command = speedrun.train_command(Path("raw"), 6.0, ["train.validate_every=7"], 8)
    assert [word for word in command if word.startswith("train.validate_every=")] == ["train.validate_every=7"]
