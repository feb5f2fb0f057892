"""The film of a run: frames ever further apart, which change nothing in the run and survive an interruption."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import Bundle, fit
from allyouneed.machine.files import read_json_lines
from allyouneed.run.log import (
    FILM_FILE,
    Speed,
    course_since_validation,
    is_filmed,
    mean_gradient_norm,
    read_jsonl_lines,
)
from allyouneed.run.state import TrainState
from runs import TINY, StopAt, read_weights

BOARD = replace(TINY, train=replace(TINY.train, tensorboard=True))


def test_tensorboard_gets_the_same_numbers_and_none_twice(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    with pytest.raises(KeyboardInterrupt):
        fit(BOARD, tmp_path / "run", callback=StopAt(10))
    fit(BOARD, tmp_path / "run", resume=True)
    # Two files of the same second are read in the order of their names, which may be the wrong one.
    board = EventAccumulator(str(tmp_path / "run/tensorboard"), purge_orphaned_data=False)
    board.Reload()
    assert {"loss", "valid_loss", "perplexity", "accuracy", "learning_rate"} <= set(board.Tags()["scalars"])
    assert sorted(event.step for event in board.Scalars("loss")) == [4, 8, 12]


def test_without_tensorboard_nothing_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    fit(BOARD, tmp_path / "run")
    assert not (tmp_path / "run/tensorboard").exists()


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    assert not (tmp_path / "run/tensorboard").exists()


def test_a_log_says_what_was_told(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run")
    log = (tmp_path / "run/log.txt").read_text().splitlines()
    topics = ["data", "pair", "pair", "tokens", "tokens", "model", "loss", "exports", "program"]
    assert [line.split()[2] for line in log] == topics


def make_frame(bundle: Bundle) -> dict[str, Any]:
    return {"sum": float(sum(weight.detach().double().abs().sum() for weight in bundle.model.parameters()))}


def test_frames_are_ever_further_apart() -> None:
    filmed = [step for step in range(100_001) if is_filmed(step)]
    assert filmed[:8] == [0, 5, 10, 16, 23, 31, 40, 50]
    assert 40 < len(filmed) < 70
    gaps = [after - before for before, after in pairwise(filmed)]
    assert gaps == sorted(gaps)


def test_a_film_begins_before_the_first_update_and_ends_after_the_last(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "filmed", evaluate=None, film=make_frame)
    fit(TINY, tmp_path / "plain", evaluate=None)
    frames = read_json_lines(tmp_path / "filmed" / FILM_FILE)
    assert [frame["step"] for frame in frames] == [0, 5, 10, 12]
    assert frames[0]["loss"] is None
    assert all(frame["loss"] > 0 for frame in frames[1:])
    assert len({frame["sum"] for frame in frames}) == 4  # of other weights each
    assert read_weights(tmp_path / "filmed") == read_weights(tmp_path / "plain")
    assert not (tmp_path / "plain" / FILM_FILE).exists()


def test_a_resumed_run_goes_on_with_its_film(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "straight", evaluate=None, film=make_frame)
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", evaluate=None, film=make_frame, callback=StopAt(11))
    fit(TINY, tmp_path / "run", evaluate=None, film=make_frame, resume=True)
    straight, resumed = (read_json_lines(tmp_path / name / FILM_FILE) for name in ("straight", "run"))
    assert [frame["sum"] for frame in resumed] == [frame["sum"] for frame in straight]


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
