"""`train` as a shell runs it, and `train --serve`: a page that translates while the model learns, until Ctrl-C."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from allyouneed import Recipe
from shell import ENVIRONMENT, TINY_DATES, refusal, run_here
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
    assert "and saved" in training.lines[-1]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{training.client.base_url}/health")
    assert (tmp_path / "runs/dates/checkpoint.safetensors").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_whose_page_is_stopped_goes_on_and_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    training = Training(tmp_path, "train.steps=1000000")
    (page,) = Path(f"/proc/{training.process.pid}/task/{training.process.pid}/children").read_text().split()
    os.kill(int(page), signal.SIGSTOP)
    metrics = tmp_path / "runs/dates/metrics.jsonl"
    wait_until(lambda: metrics.is_file() and metrics.read_text().count("\n") > 20, training.process)
    assert training.stop(number) == {signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    wait_until(lambda: not Path("/proc", page).exists() or " Z " in Path("/proc", page, "stat").read_text())


@pytest.mark.slow
def test_when_the_run_has_ended_its_page_goes_on_and_names_commands_that_work(tmp_path: Path) -> None:
    training = Training(tmp_path, "train.steps=10")
    wait_until(lambda: training.describe()["state"] == "finished", training.process)
    assert len(training.translate()) == 1
    commands = training.describe()["commands"]
    assert training.stop(signal.SIGINT) == 0
    longer = commands["Train longer"].split(" -m allyouneed ")[1].split()
    assert longer[-2:] == ["--resume", "train.steps=20"]
    assert "train.steps=10" not in longer
    longer.remove("--serve")
    resumed = run_here(*longer, cwd=tmp_path)
    assert resumed.returncode == 0
    assert b"continuing after update 10" in resumed.stderr


def test_what_starts_no_run_has_no_page(tmp_path: Path) -> None:
    assert "leave out" in refusal("train", "dates", *SMALL, "--dry-run", "--serve", cwd=tmp_path)


def test_what_training_prints_at_its_end_can_be_copied_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "a run [fast]"
    screen = run_here("train", "dates", *TINY_DATES, "--output", folder).stderr.decode()
    assert f"{folder}/report.html" in screen
    assert f"allyouneed translate '{folder}'" in screen


@pytest.mark.slow
def test_a_run_can_be_repeated_and_gone_on_with(tmp_path: Path) -> None:
    assert run_here("train", "dates", *TINY_DATES, cwd=tmp_path).returncode == 0
    assert (tmp_path / "runs/dates/config.json").is_file()
    assert "runs/dates already contains" in refusal("train", "dates", *TINY_DATES, cwd=tmp_path)
    again = run_here("train", "runs/dates/recipe.toml", "--output", "runs/again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr.decode()
    first, second = (tmp_path / f"runs/{name}/weights.safetensors" for name in ("dates", "again"))
    assert first.read_bytes() == second.read_bytes()
    scores = tmp_path / "runs/dates/test.json"
    scores.write_text(json.dumps(json.loads(scores.read_text()) | {"notes": ["scored once"]}))
    resumed = run_here("train", "dates", *TINY_DATES, "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert "after update 6" in resumed.stderr.decode()
    assert b"scored once" in resumed.stderr
    assert "scored once" in scores.read_text()
    assert run_here("train", "dates", *TINY_DATES, "--overwrite", cwd=tmp_path).returncode == 0


def test_an_unknown_metric_is_refused_before_any_work(tmp_path: Path) -> None:
    for words in ([], ["--dry-run"]):
        wrong = ("train", "dates", *TINY_DATES, "train.early_stopping_metric=blue", *words)
        assert "early_stopping_metric" in refusal(*wrong, cwd=tmp_path)


def test_two_files_make_a_translation_run(tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a dog\na cat\n" * 20))
    (tmp_path / "train.de").write_text("ein Hund\neine Katze\n" * 20)
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = ["train.en.gz", "train.de"]\nvocab_size = 262\nheld_out = 0\n'
        "[model]\nd_model = 8\nd_ff = 8\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\n"
        "[train]\nsteps = 3\nbatch_tokens = 100\n"
    )
    trained = run_here("train", "recipe.toml", "--output", "run", cwd=tmp_path)
    assert trained.returncode == 0
    assert "held out (data.test, data.held_out)" in trained.stderr.decode()
    assert "evaluate run FILE" in trained.stderr.decode()
    assert len(run_here("translate", "run", stdin=b"a dog\n", cwd=tmp_path).stdout.split(b"\n")) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_asked_to_stop_saves_and_leaves_with_its_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    words = [
        *TINY_DATES,
        "train.steps=100000",
        "train.validate_samples=5",
        "train.threads=1",
        "--output",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "train", "dates", *words], stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    wait_until((tmp_path / "run/config.json").exists, process)
    process.send_signal(number)
    last_line = process.communicate(timeout=PATIENCE)[1].decode().splitlines()[-1]
    assert process.returncode == code
    assert re.fullmatch(r"allyouneed: .* update \d+ and saved; .* --resume", last_line)
    assert (tmp_path / "run/checkpoint.safetensors").is_file()


def test_a_recipe_is_filled_in_from_its_corpus_and_a_model_goes_on_to_other_pairs(tmp_path: Path) -> None:
    data = 'train = "dates:train"\nmax_train_samples = 300\nheld_out = 0\nvocabulary = "characters"\n'
    (tmp_path / "my.toml").write_text(f"[data]\n{data}")
    few = ["train.steps=2", "train.threads=1", "train.tensorboard=false"]
    first = run_here("train", "my.toml", *few, "--auto", "--output", "first", cwd=tmp_path)
    assert first.returncode == 0, first.stderr.decode()
    assert b"auto    " not in first.stderr
    assert b"\nwhy     first/log.txt\n" in first.stderr
    assert "auto     model.d_model=64" in (tmp_path / "first/log.txt").read_text()
    assert b"updates of" in first.stderr
    assert (tmp_path / "first/report.html").is_file()
    second = run_here(
        "train",
        "my.toml",
        *few,
        "data.max_train_samples=200",
        "--init-from",
        "first",
        "--output",
        "second",
        cwd=tmp_path,
    )
    assert second.returncode == 0, second.stderr.decode()
    assert "starting from first" in (tmp_path / "second/README.md").read_text()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "pairs.tsv is empty"),
        (b"a\tb\n", "of 1 usable pairs"),
        ("a\tb\nc\td\n".encode("utf-16"), ": iconv"),
    ],
)
def test_a_fault_of_the_file_is_named_before_a_budget_that_is_too_short(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    (tmp_path / "pairs.tsv").write_bytes(content)
    assert fault in refusal("train", "pairs.tsv", "--minutes", "0.001", cwd=tmp_path)


def test_a_folder_that_cannot_be_written_gets_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\n" * 9)
    line = refusal("train", "pairs.tsv", "-o", "/proc/x", cwd=tmp_path)
    assert "No such file" in line


def test_each_seed_is_a_run_and_their_scores_are_a_row(tmp_path: Path) -> None:
    trained = run_here("train", "dates", *TINY_DATES, "--seeds", "3,5", "-o", tmp_path / "run")
    assert trained.returncode == 0, trained.stderr.decode()
    assert f"{tmp_path / 'run-3'}, 2 seeds" in trained.stderr.decode()
    assert Recipe.read(tmp_path / "run-5/recipe.toml").train.seed == 5
    scored = run_here("evaluate", *(tmp_path / name for name in ("run-3", "run-5", "run-3")), "--json")
    rows = json.loads(scored.stdout)["by_seed"]
    assert [len(row["systems"]) for row in rows] == [3]
    for wrong in ("3", "3,3", "3,x"):
        assert "--seeds" in refusal("train", "dates", "--seeds", wrong, "-o", tmp_path / "other")
