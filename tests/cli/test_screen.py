"""What stands on the screen: in a terminal, and in a pipe, which has no width."""

import os
import pty
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.progress import Task

from allyouneed.apps.cli.progress_bar import ProgressBar, TimeLeft
from allyouneed.run import Sample, Validation
from allyouneed.train import Update
from pretended_gpu import GPU, pretend_gpu
from shell import ENVIRONMENT
from waiting import PATIENCE


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def updated(screen: ProgressBar, step: int) -> Task:
    update = Update(step, torch.tensor(2.0), 0.1, torch.tensor(1.0), is_finite=torch.tensor(True), tokens=500)
    screen.on_update(update, steps=0)
    return screen._bar.tasks[0]


def make_validation(text: str = "ab") -> Validation:
    return Validation(1, 2.0, 0.1, 2.5, 30.0, {"bleu": 1.0}, 5.0, samples=[Sample(text, text, text, 3.0)])


def test_the_time_left_is_known_after_the_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screen = clock(monkeypatch), ProgressBar()
    screen._bar.get_time = screen._bar.tasks[0]._get_time = lambda: now[0]
    screen.on_train_begin(4, steps=10)
    now[0] += 60
    assert str(TimeLeft().render(updated(screen, 5))) == "· 0:05:00 left"


def test_the_speed_leaves_validation_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screen = clock(monkeypatch), ProgressBar()
    screen.on_train_begin(0, steps=10)
    now[0] += 5
    updated(screen, 1)
    now[0] += 300  # validating
    screen.on_validation(make_validation())
    now[0] += 5
    assert "100 tokens/s · loss 2.000" in updated(screen, 2).fields["about"]


def test_a_bleu_of_0_beside_exact_matches_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ProgressBar(samples=False)
    for scores in ({"bleu": 0.0, "exact": 0.0}, {"bleu": 0.0, "exact": 50.0}, {"bleu": 3.0, "exact": 50.0}):
        screen.on_validation(replace(make_validation(), scores=scores))
    rows = [line.split() for line in capsys.readouterr().err.splitlines() if line][1:]
    assert [row[-3:-1] for row in rows] == [["0.00", "0.00"], ["–", "50.00"], ["3.00", "50.00"]]


def test_what_goes_into_a_pipe_is_neither_wrapped_nor_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "a [long] :smile: text " * 20
    screen = ProgressBar()
    screen.on_message("data", long)
    screen.on_validation(make_validation(long.strip()))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"data    {long}"
    assert lines[-1].endswith(f"→ {long.strip()}")


def test_typed_texts_get_a_prompt(saved: Path) -> None:
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "translate", str(saved)],
        stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=ENVIRONMENT,
    )  # fmt: skip
    os.close(terminal)
    os.write(master, b"abc\n\x04")
    out, _ = process.communicate(timeout=PATIENCE)
    output = os.read(master, 10_000).decode()
    os.close(master)
    assert (process.returncode, out.count(b"\n")) == (0, 1)
    assert "Ctrl-D ends" in output
    assert output.count("> ") == 2
    assert "translating" not in output


def test_reasons_are_in_the_log_unless_they_are_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for details in (None, tmp_path / "log.txt"):
        screen = ProgressBar(details=details)
        for topic in ("data", "pair", "auto", "statistics", "model", "time"):
            screen.on_message(topic, "text")
        screen.on_train_begin(0, steps=10)
        screen.on_message("rollback", "text")
    topics = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert topics[:7] == ["data", "pair", "auto", "statistics", "model", "time", "rollback"]
    assert topics[7:] == ["data", "pair", "model", "time", "why", "rollback"]


def test_the_loss_on_the_bar_is_ready_when_it_is_read() -> None:
    with pretend_gpu() as gpu:
        screen = ProgressBar()
        screen.on_train_begin(0, steps=40)
        shown = []
        for step in range(1, 41):
            loss = torch.full((), float(step)).pin_memory().to(GPU, non_blocking=True)
            update = Update(step, loss, 0.1, loss, is_finite=loss > 0, tokens=500)
            screen.on_update(update, steps=40)
            shown.append(screen._loss)
    assert gpu.waits.total() == 5
    assert shown[9::10] == [1.0, 10.0, 20.0, 30.0]
