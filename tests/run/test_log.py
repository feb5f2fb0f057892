import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed import fit
from runs import TINY, StopAt

BOARD = replace(TINY, train=replace(TINY.train, tensorboard=True))


def test_tensorboard_gets_the_same_numbers_and_none_twice(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    with pytest.raises(KeyboardInterrupt):
        fit(BOARD, tmp_path / "run", callback=StopAt(10))
    fit(BOARD, tmp_path / "run", resume=True)
    board = EventAccumulator(str(tmp_path / "run/tensorboard"))
    board.Reload()
    assert {"loss", "valid_loss", "perplexity", "accuracy", "learning_rate"} <= set(board.Tags()["scalars"])
    assert [event.step for event in board.Scalars("loss")] == [4, 8, 12]


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
    topics = ["data", "pair", "pair", "tokens", "tokens", "model", "exports", "program"]
    assert [line.split()[2] for line in log] == topics
