"""What stands on the screen: in a terminal, and in a pipe, which has no width."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.progress import Task

from allyouneed.cli.screen import TimeLeft, TrainingScreen
from allyouneed.run import Sample, Validation
from allyouneed.train import Update
from shell import ENVIRONMENT


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def updated(shown: TrainingScreen, step: int) -> Task:
    shown.on_update(Update(step, torch.tensor(2.0), 0.1, tokens=500))
    return shown._bar.tasks[0]


def pause(text: str = "ab") -> Validation:
    return Validation(1, 2.0, 0.1, 2.5, 30.0, {"bleu": 1.0}, 5.0, samples=[Sample(text, text, text, 3.0)])


def test_the_time_left_is_known_after_the_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = clock(monkeypatch), TrainingScreen()
    shown._bar.get_time = shown._bar.tasks[0]._get_time = lambda: now[0]
    shown.on_train_begin(4, steps=10)
    now[0] += 60
    assert str(TimeLeft().render(updated(shown, 5))) == "· 0:05:00 left"


def test_the_speed_leaves_validation_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = clock(monkeypatch), TrainingScreen()
    shown.on_train_begin(0, steps=10)
    now[0] += 5
    updated(shown, 1)
    now[0] += 300  # validating
    shown.on_validation(pause())
    now[0] += 5
    assert "100 tokens/s · loss 2.000" in updated(shown, 2).fields["about"]


def test_what_goes_into_a_pipe_is_neither_wrapped_nor_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "a [long] :smile: text " * 20
    shown = TrainingScreen()
    shown.on_message("data", long)
    shown.on_validation(pause(long.strip()))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"data    {long}"
    assert lines[-1].endswith(f"→ {long.strip()}")


def test_a_prompt_stands_where_texts_are_typed(saved: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "translate", str(saved)],
        stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"abc\n\x04")
    out, _ = process.communicate(timeout=100)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert (process.returncode, out.count(b"\n")) == (0, 1)
    assert "Ctrl-D ends" in shown
    assert shown.count("> ") == 2
    assert "translating" not in shown
