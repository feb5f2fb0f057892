"""`train --serve`: a page that translates while the model learns, and stays until Ctrl-C."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from shell import ENVIRONMENT, refusal, run_here
from waiting import PATIENCE, wait_until

SMALL = (
    "data.max_train_samples=200", "data.max_valid_samples=20", "model.d_model=8", "model.d_ff=8",
    "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "train.validate_every=5", "train.warmup=2",
    "train.cooldown=0", "train.threads=1", "train.validate_samples=5", "train.tensorboard=false",
)  # fmt: skip


class Training:
    """`allyouneed train dates --serve` in a process, and a client of its page."""

    def __init__(self, cwd: Path, *words: str) -> None:
        self.lines: list[str] = []
        command = [sys.executable, "-m", "allyouneed", "train", "dates", *SMALL, "--serve", *words]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=cwd, text=True)
        self.read_until("http://")
        (url,) = re.findall(r"http://[\d.:]+", self.lines[-1])
        self.client = httpx.Client(base_url=url, timeout=PATIENCE)

    def read_until(self, words: str) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line)
            if words in line:
                return
        raise AssertionError("".join(self.lines))

    def describe(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.get("/v1/training").json()
        return answer

    def translate(self) -> list[str]:
        (language,) = (one for one in self.client.get("/languages").json() if one["targets"])
        pair = {"source": language["code"], "target": language["targets"][0]}
        answer = self.client.post("/v1/translate", json={"texts": ["1845-01-05"], **pair}).json()
        return [one["text"] for one in answer["translations"]]

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.lines += self.process.communicate(timeout=PATIENCE)[1].splitlines()
        self.client.close()
        return self.process.returncode


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_has_translated_and_ends_its_page(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    training = Training(tmp_path, "train.steps=1000000")
    wait_until(lambda: training.describe()["kept"] > 0, training.process)
    assert len(training.translate()) == 1
    assert training.stop(number) == code
    assert "saved; resuming continues from there" in training.lines[-1]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{training.client.base_url}/health")
    assert (tmp_path / "runs/dates/checkpoint.safetensors").is_file()


@pytest.mark.slow
def test_when_the_run_has_ended_its_page_goes_on_and_names_commands_that_work(tmp_path: Path) -> None:
    training = Training(tmp_path, "train.steps=10")
    wait_until(lambda: training.describe()["state"] == "finished", training.process)
    assert len(training.translate()) == 1
    commands = training.describe()["commands"]
    assert training.stop(signal.SIGINT) == 0
    longer = commands["Train longer"].split(" -m allyouneed ")[1].split()
    assert longer[-2:] == ["train.steps=20", "--resume"]
    assert "train.steps=10" not in longer
    longer.remove("--serve")
    resumed = run_here(*longer, cwd=tmp_path)
    assert resumed.returncode == 0
    assert b"continuing after update 10" in resumed.stderr


def test_what_starts_no_run_has_no_page(tmp_path: Path) -> None:
    assert "leave out" in refusal("train", "dates", *SMALL, "--dry-run", "--serve", cwd=tmp_path)
