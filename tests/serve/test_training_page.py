"""The process that serves the page of a run, and what it is told."""

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from allyouneed.apps.serve.training_page import ShownOnPage, TrainingPage
from allyouneed.machine.interrupts import InterruptRequest
from allyouneed.run import Validation
from allyouneed.train import Update
from runs import Notebook
from waiting import PATIENCE, wait_until


class RecordingPage(TrainingPage):
    """A page without a server."""

    def __init__(self) -> None:
        self.news: list[dict[str, Any]] = []

    def tell(self, news: Any) -> None:
        self.news.append(dict(news))


def update(step: int) -> Update:
    return Update(step, torch.tensor(2.0), 0.1, torch.tensor(1.0), torch.tensor(True), 10)


def test_it_is_told_once_a_second_how_far_the_run_is_and_of_each_validation() -> None:
    page, notebook, seconds = RecordingPage(), Notebook(), 0.0
    watch = ShownOnPage(notebook, page, now=lambda: seconds)
    watch.on_message("pairs", "12 pairs")
    watch.on_train_begin(10, 110)
    for step in range(11, 31):
        seconds += 0.25
        watch.on_update(update(step), 110)
    watch.on_validation(Validation(30, 1.0, 0.1, 1.5, 50.0, {"bleu": 3.0}))
    progress = [news for news in page.news if "loss" in news]
    assert [news["step"] for news in progress] == [11, 15, 19, 23, 27]
    assert progress[-1] == {"step": 27, "steps": 110, "loss": 2.0, "seconds_left": pytest.approx(0.25 * 83)}
    assert page.news[0] == {"message": "12 pairs", "warnings": []}
    assert page.news[-1] == {"kept": True, "valid_loss": 1.5, "score": {"bleu": 3.0}}
    assert (notebook.lines, len(notebook.validations)) == (["pairs: 12 pairs"], 1)
    watch.on_message("warning", "few")
    watch.on_message("pairs", "more")
    assert page.news[-1]["warnings"] == ["few"]


@pytest.mark.slow
def test_its_server_ends_with_it_and_leaves_no_empty_file(tmp_path: Path) -> None:
    with TrainingPage(corrections=tmp_path / "runs/corrections.jsonl", port=0) as page:
        page.tell({"state": "preparing", "name": "mine"})
        with httpx.Client(base_url=page.url(), timeout=PATIENCE) as client:
            assert "<title>" in client.get("/").text
            wait_until(lambda: client.get("/v1/training").json().get("name") == "mine")
        assert (tmp_path / "runs/corrections.jsonl").exists()
    assert list((tmp_path / "runs").glob("*.jsonl")) == []


def test_a_page_that_has_failed_never_ends_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with TrainingPage(corrections=tmp_path / "file/corrections.jsonl", port=0) as page:
        assert page.url() == ""
        page.wait(InterruptRequest())
        for _ in range(3):
            page.tell({"message": "12 pairs"})


def test_a_stopped_server_takes_no_time_from_a_run_and_ends_with_it(tmp_path: Path) -> None:
    """A megabyte is more than a pipe holds."""
    with TrainingPage(corrections=tmp_path / "corrections.jsonl", port=0) as page:
        server = page._process
        server.send_signal(signal.SIGSTOP)
        for number in range(1_000):
            page.tell({"message": f"{number} " + 1_000 * "x"})
    assert server.returncode is not None


@pytest.mark.slow
def test_a_server_that_was_slow_is_told_what_it_has_missed(tmp_path: Path) -> None:
    with (
        TrainingPage(corrections=tmp_path / "corrections.jsonl", port=0) as page,
        httpx.Client(base_url=page.url(), timeout=PATIENCE) as client,
    ):
        page._process.send_signal(signal.SIGSTOP)
        page.tell({"name": "mine"})
        for step in range(2_000):
            page.tell({"step": step, "about": 100 * "x"})
        page._process.send_signal(signal.SIGCONT)
        wait_until(lambda: client.get("/v1/training").json().get("step") == 1_999)
        assert client.get("/v1/training").json()["name"] == "mine"
