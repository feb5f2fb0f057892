"""`allyouneed try`: the model of the program is right, served at once, and used by the printed commands."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from allyouneed import Translator
from allyouneed.apps.cli.try_command import DATE_MODEL
from allyouneed.data.tasks import date_pairs
from shell import ENVIRONMENT, run_here
from waiting import PATIENCE


def test_the_model_is_a_megabyte_and_right_on_unseen_dates() -> None:
    assert sum(file.stat().st_size for file in DATE_MODEL.iterdir()) <= 1_000_000
    sources, targets = map(list, zip(*date_pairs("test", count=2_000), strict=True))
    assert Translator.load(DATE_MODEL).translate(sources) == targets


def test_it_is_served_until_ctrl_c_and_its_commands_work(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "try"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=tmp_path, text=True,
    )  # fmt: skip
    assert process.stderr
    url = next(match[0] for line in process.stderr if (match := re.search(r"http://[\d.:]+", line)))
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        (language,) = (one for one in client.get("/languages").json() if one["targets"])
        pair = {"source": language["code"], "target": language["targets"][0]}
        answer = client.post("/translate", json={"q": "1845-01-05", **pair})
        assert client.get("/").status_code == 200
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 130)
    assert answer.json()["translatedText"] == "January 5, 1845"

    assert "1845-01-05  →  January 5, 1845" in output
    commands = {line[2:20].strip(): shlex.split(line.partition(" -m allyouneed ")[2]) for line in output.splitlines()}
    assert run_here(*commands["translate a text"], cwd=tmp_path).stdout == b"February 29, 2024\n"
    for what in ("see how it works", "is it sound"):
        assert run_here(*commands[what], cwd=tmp_path).returncode == 0
    assert (tmp_path / "explained.html").is_file()
