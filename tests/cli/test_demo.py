"""The promise of the front page: every unseen date right, and the examples converted."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from allyouneed import Translator
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.data.tasks import date_pairs
from conftest import Demo
from shell import ENVIRONMENT, refusal, run_here
from waiting import PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "100.00 % of 2,000 unseen dates",
        "1845-01-05  →  January 5, 1845",
        "1467-07-28  →  July 28, 1467",
        "1468-01-11  →  January 11, 1468",
        "1996-09-08  →  September 8, 1996",
        "1959-03-02  →  March 2, 1959",
        "Try next:",
    ],
)
def test_the_demo_learns_all_dates(demo: Demo, line: str) -> None:
    assert line in demo.output


@pytest.mark.slow
def test_it_draws_what_the_decoder_looks_at(demo: Demo) -> None:
    assert (demo.folder / "runs/dates/cross_attention.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return a folder with a model of dates in runs/dates, as the demo leaves one."""
    shutil.copytree(DATE_MODEL, tmp_path / "there/runs/dates")
    return tmp_path / "there"


def test_dates_stay_right_in_int8() -> None:
    translator = Translator.load(DATE_MODEL, device="cpu", precision="int8")
    sources, targets = map(list, zip(*date_pairs("test", count=2_000), strict=True))
    assert translator.precision == "int8"
    assert translator.translate(sources) == targets


def test_a_text_is_translated_as_it_is_typed_unless_a_file_has_its_name(there: Path) -> None:
    result = run_here("translate", "runs/dates", "1845-01-05", cwd=there)
    assert result.stdout == b"January 5, 1845\n"
    assert b"'1845-01-05'" in result.stderr
    (there / "1996-09-08").write_text("1959-03-02\n")
    assert run_here("translate", "runs/dates", "1996-09-08", cwd=there).stdout == b"March 2, 1959\n"


def test_a_model_that_is_not_named_or_misspelt_is_one_of_those_that_are_there(there: Path, tmp_path: Path) -> None:
    line = refusal("translate", cwd=there)
    assert re.search("'BUNDLE'.* runs/dates.* allyouneed translate runs/", line)
    assert "allyouneed serve runs/" in refusal("serve", cwd=there)
    assert "allyouneed train PAIRS" in refusal("translate", cwd=tmp_path)
    assert refusal("translate", "runs/date", cwd=there).endswith("runs/dates?")
    (there / "dates-of-another-kind").mkdir(exist_ok=True)
    assert refusal("translate", "dates", cwd=there).endswith("runs/dates?")


@pytest.mark.slow
def test_the_next_steps_are_commands_that_work(demo: Demo) -> None:
    lines = demo.output.partition("Try next:")[2].splitlines()
    commands = {words[0]: words for line in lines if (words := shlex.split(line.partition(" -m allyouneed ")[2]))}
    assert commands.keys() == {"translate", "evaluate", "serve", "explain", "export", "train"}
    assert run_here(*commands["translate"], cwd=demo.folder).stdout == b"February 29, 2024\n"
    for name in ("explain", "export"):
        assert run_here(*commands[name], cwd=demo.folder).returncode == 0


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
    parts = [shlex.split(line.partition(" -m allyouneed ")[2]) for line in output.splitlines()]
    commands = {words[0]: words for words in parts if words}
    assert run_here(*commands["translate"], cwd=tmp_path).stdout == b"February 29, 2024\n"
    for name in ("explain", "check"):
        assert run_here(*commands[name], cwd=tmp_path).returncode == 0
    assert (tmp_path / "explained.html").is_file()
