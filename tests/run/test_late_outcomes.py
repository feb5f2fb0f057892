"""A whole run on a pretended GPU: batches made ahead, and outcomes read one update later."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import fit
from allyouneed.train import add_gradients
from messages import numbers_in
from pretended_gpu import pretend_gpu
from runs import TINY, Notebook, StopAt, read_weights

ON_GPU = replace(TINY, train=replace(TINY.train, device="cuda"))


@pytest.fixture(autouse=True)
def on_a_gpu() -> Iterator[None]:
    with pretend_gpu():
        yield


def spoil(monkeypatch: pytest.MonkeyPatch, first: int, last: int) -> None:
    """Plant updates whose loss is not a number."""
    calls = 0

    def spoiled(*args: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        nonlocal calls
        calls += 1
        loss, norm = add_gradients(*args, **options)
        return loss * (float("nan") if first <= calls <= last else 1), norm

    monkeypatch.setattr("allyouneed.run.run.add_gradients", spoiled)


def test_an_interrupted_run_is_resumed_exactly_and_no_thread_stays(tmp_path: Path) -> None:
    fit(ON_GPU, tmp_path / "straight", evaluate=None)
    with pytest.raises(KeyboardInterrupt):
        fit(ON_GPU, tmp_path / "run", evaluate=None, callback=StopAt(6))
    fit(ON_GPU, tmp_path / "run", evaluate=None, resume=True)
    assert read_weights(tmp_path / "run") == read_weights(tmp_path / "straight")
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("prefetch")] == []


def test_a_skipped_update_is_reported_and_not_among_the_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 4, 5)  # the last update before a validation, and the first after it
    notebook = Notebook()
    recipe = replace(ON_GPU, train=replace(ON_GPU.train, ema_decay=0.9, average_checkpoints=1))
    fit(recipe, tmp_path / "run", evaluate=None, callback=notebook)
    lines = [line for line in notebook.lines if line.startswith("skipped")]
    assert [numbers_in(line) for line in lines] == [[4], [5]]
    assert [validation.skipped for validation in notebook.validations] == [1, 2, 2]
    course = [json.loads(line) for line in (tmp_path / "run/updates.jsonl").read_text().splitlines()]
    assert len(course) == 12 - 2
    assert all(line["loss"] > 0 for line in course)


def test_five_in_a_row_roll_back_one_update_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, 5, 9)
    notebook = Notebook()
    fit(ON_GPU, tmp_path / "run", evaluate=None, callback=notebook)
    assert [validation.step for validation in notebook.validations] == [4, 8, 12, 12]
    (line,) = [line for line in notebook.lines if line.startswith("rollback")]
    assert numbers_in(line) == [5, 10, 8, 0.5]
    assert len([line for line in notebook.lines if line.startswith("skipped")]) == 5
