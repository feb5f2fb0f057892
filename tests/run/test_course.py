import json
from pathlib import Path

import pytest
import torch

from allyouneed import fit
from allyouneed.run.course import Speed, course_since_validation, mean_gradient_norm
from allyouneed.run.log import read_jsonl_lines
from allyouneed.run.state import TrainState
from runs import TINY


def test_the_course_has_means_of_equal_parts() -> None:
    losses = [torch.tensor(float(step)) for step in range(1, 41)]
    state = TrainState(step=140, losses=losses, gradient_norms=losses, learning_rate_factor=0.5)
    lines = course_since_validation(state, lambda step: step / 100)
    assert [line["step"] for line in lines] == list(range(102, 141, 2))
    assert lines[0] == {"step": 102, "loss": 1.5, "gradient_norm": 1.5, "learning_rate": 0.51}
    assert mean_gradient_norm(state) == 20.5


def test_without_updates_there_is_no_course() -> None:
    assert course_since_validation(TrainState(), lambda _: 1.0) == []
    assert mean_gradient_norm(TrainState()) is None


def test_the_speed_counts_since_its_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    speed = Speed()
    assert speed.tokens_per_second() is None
    speed.count(300)
    now[0] = 12.0
    assert speed.tokens_per_second() == 150
    speed.restart()
    assert speed.tokens_per_second() is None


def test_a_run_logs_its_course_and_where_it_ran(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    lines = read_jsonl_lines(tmp_path / "run/updates.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert all(line["gradient_norm"] > 0 and line["loss"] > 0 for line in lines)
    validations = read_jsonl_lines(tmp_path / "run/metrics.jsonl")
    assert validations[0]["gradient_norm"] == pytest.approx(sum(line["gradient_norm"] for line in lines[:4]) / 4)
    assert validations[0]["learning_rate"] == lines[3]["learning_rate"]
    assert validations[0]["tokens_per_second"] > 0
    (start,) = map(json.loads, (tmp_path / "run/environment.jsonl").read_text().splitlines())
    assert start.keys() == {"step", "time", "command", "versions", "system", "processor", "device", "threads"}
