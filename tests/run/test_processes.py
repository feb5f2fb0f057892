"""Several processes train one model: they end with the model of one process, and no failure of one is silent."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed import Recipe, TrainConfig, TrainingError, Transformer, fit
from allyouneed.bundle import Bundle
from allyouneed.run import processes, worker_count
from allyouneed.train import Update, add_gradients, make_optimizer
from forked_workers import children_with, forking_workers, is_running, kill_worker, start_run
from messages import numbers_in
from runs import TINY, Notebook, StopAt, eventful, read_weights
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.slow


def with_workers(recipe: Recipe, count: int, **train: Any) -> Recipe:
    return replace(recipe, train=replace(recipe.train, workers=count, **train))


BFLOAT16 = with_workers(eventful(), 2, optimizer="muon", precision="bfloat16")


def test_a_lost_worker_is_known_by_the_words_of_gloo_and_of_nccl() -> None:
    lost = ("[gloo/transport/tcp/pair.cc:534] Connection closed by peer", "NCCL error: remote process exited")
    assert all(processes.has_lost_others(RuntimeError(text)) for text in lost)
    assert not processes.has_lost_others(RuntimeError("shapes do not match"))


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


class KillAWorker(Notebook):
    """Kills the other worker after some update."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def on_update(self, update: Update, steps: int) -> None:
        if update.step == self._step:
            kill_worker()


@pytest.fixture
def forked() -> Iterator[None]:
    """Let runs fork their workers, where the start of a worker is not what is tested."""
    with forking_workers():
        yield


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run of two workers that nothing stops."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    with forking_workers():
        fit(BFLOAT16, folder)
    return folder


def test_two_workers_have_the_losses_and_the_weights_of_one(forked: None, tmp_path: Path) -> None:
    """Without dropout; batches of 40 tokens also have parts without a single pair."""
    for workers in (1, 2):
        recipe = with_workers(
            TINY, workers, clip_norm=1.0, batch_tokens=40, accumulate_steps=2, ema_decay=0.5, average_checkpoints=1
        )
        recipe = replace(recipe, model=replace(recipe.model, dropout=0.0))
        fit(recipe, tmp_path / str(workers))
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), rel=1e-5)
    one, two = (Bundle.load(tmp_path / name).model.state_dict() for name in ("1", "2"))
    for name, tensor in one.items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone, which Adam enlarges
            assert (two[name] - tensor).abs().max() < 1e-4, name


def test_a_resumed_run_of_two_in_bfloat16_ends_with_the_same_bits(forked: None, straight: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(BFLOAT16, tmp_path / "run", callback=StopAt(8))
    fit(BFLOAT16, tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(straight)


def test_a_killed_worker_ends_the_run_with_one_message_and_the_checkpoint_is_kept(
    forked: None, straight: Path, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="worker 2 .*signal 9"):
        fit(BFLOAT16, tmp_path / "run", callback=KillAWorker(5))
    fit(BFLOAT16, tmp_path / "run", resume=True)
    assert read_weights(tmp_path / "run") == read_weights(straight)


def test_all_go_back_to_the_checkpoint_when_the_updates_of_one_are_not_finite(
    forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def spoiled(*args: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        nonlocal calls
        calls += 1
        loss, norm = add_gradients(*args, **options)
        return loss * (float("nan") if 5 <= calls < 10 else 1), norm

    monkeypatch.setattr("allyouneed.run.run.add_gradients", spoiled)
    notebook = Notebook()
    fit(with_workers(TINY, 2), tmp_path / "run", callback=notebook)
    assert [validation.step for validation in notebook.validations] == [4, 8, 12, 12]
    (line,) = [line for line in notebook.lines if line.startswith("rollback")]
    assert numbers_in(line) == [5, 9, 8, 0.5]
    assert len([line for line in notebook.lines if line.startswith("skipped")]) == 5


ENDLESS = (
    '[data]\ntrain = "dates:train"\nmax_train_samples = 200\nheld_out = 0\nvocabulary = "characters"\n'
    "[model]\nd_model = 8\nd_ff = 8\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nmax_length = 32\n"
    "[train]\nsteps = 1000000\nbatch_tokens = 200\nvalidate_every = 5\naverage_checkpoints = 1\nthreads = 2\n"
    "workers = 2\ntensorboard = false\n"
)


def start(folder: Path) -> "subprocess.Popen[str]":
    """Start the command `train` with two workers; return it after its first validation."""
    (folder / "tiny.toml").write_text(ENDLESS)
    words = [sys.executable, "-m", "allyouneed", "train", "tiny.toml", "-o", "run"]
    process = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True)
    wait_until((folder / "run/config.json").exists, process)
    return process


def test_ctrl_c_saves_and_ends_all_workers(tmp_path: Path) -> None:
    process = start(tmp_path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "and saved" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_stopped_worker_does_not_keep_a_run_from_ending(tmp_path: Path) -> None:
    process = start(tmp_path)
    (worker,) = children_with("worker_process", process.pid)
    os.kill(worker, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, errors
    assert "and saved" in errors.splitlines()[-1]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_killed_run_leaves_neither_a_worker_nor_a_temporary_file(tmp_path: Path, is_stopped: bool) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = start_run(Recipe.from_tables(tomllib.loads(ENDLESS)), tmp_path / "run", temporary)
    wait_until((tmp_path / "run/config.json").exists, process)
    (worker,) = children_with("worker_process", process.pid)
    os.kill(worker, signal.SIGSTOP if is_stopped else signal.SIGCONT)
    process.kill()
    process.join(PATIENCE)
    wait_until(lambda: not is_running(worker))
    assert list(temporary.iterdir()) == []


def test_a_module_in_the_current_folder_is_none_of_a_worker_that_a_script_starts(tmp_path: Path) -> None:
    """The installed command does not look there; where it does, a worker that cannot start has nothing to resume."""
    (tmp_path / "random.py").write_text("raise ValueError('mine')")
    words = ["train", "dates", "--output", "run", "data.max_train_samples=100", "data.max_valid_samples=2",
             "train.steps=1", "train.workers=2", "train.threads=2", "train.tensorboard=false"]  # fmt: skip
    program = (
        "import random, sys; from allyouneed.apps.cli import main; sys.path[:] = filter(None, sys.path); "
        "{}sys.argv[1:] = {}; main()"
    )
    for code, before in ((0, ""), (2, "sys.path.append(''); ")):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program.format(before, [*words, "--overwrite"])],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
    assert re.fullmatch("allyouneed: worker 2 of 2 .*; .*train.workers=1 .*", done.stderr.splitlines()[-1])


TRIALS = {"WINDOW": 0, "FEWEST": 2, "MIN_UPDATE": 1, "WORTH_SECONDS": -1, "WORTH_WINDOWS": 0}  # every few updates


def test_a_run_that_changes_its_processes_ends_with_the_same_bits_when_it_was_stopped(
    forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of two updates; the trial of two processes begins after update 8, and is kept or given up after 12.

    After update 24 the other number is tried, for as long.
    """
    changes = TRIALS | {"CHANGED": 1e-9, "HOPELESS": 0, "TRYING": 2}
    for name, value in changes.items():
        monkeypatch.setattr(worker_count, name, value)
    monkeypatch.setattr(worker_count, "available_cores", lambda: 2)
    recipe = eventful(threads=0, steps=30, optimizer="muon")
    weights = []
    for kept, (gain, stops) in enumerate([(float("inf"), (10,)), (0, (7, 26))]):
        monkeypatch.setattr(worker_count, "GAIN", gain)
        straight, stopped = tmp_path / f"straight{kept}", tmp_path / f"stopped{kept}"
        notebook = Notebook()
        fit(recipe, straight, callback=notebook, evaluate=None)
        assert [line for line in notebook.lines if line.startswith("workers: on 2 cores")], notebook.lines
        for step in stops:
            with pytest.raises(KeyboardInterrupt):
                fit(recipe, stopped, callback=StopAt(step), evaluate=None, resume=True)
        fit(recipe, stopped, evaluate=None, resume=True)
        assert read_weights(stopped) == read_weights(straight)
        weights.append(read_weights(straight))
    fit(with_workers(recipe, 1), tmp_path / "one", evaluate=None)
    assert len({*weights, read_weights(tmp_path / "one")}) == 3  # both have made other updates than one process


def test_a_trial_whose_processes_cannot_start_leaves_the_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TRIALS.items():
        monkeypatch.setattr(worker_count, name, value)
    monkeypatch.setattr(worker_count, "available_cores", lambda: 2)
    monkeypatch.setattr(processes, "python_command", lambda *_: [sys.executable, "-c", "raise SystemExit(1)"])
    fit(eventful(threads=0, steps=24), tmp_path / "auto", evaluate=None)
    fit(eventful(threads=0, steps=24, workers=1), tmp_path / "one", evaluate=None)
    assert read_weights(tmp_path / "auto") == read_weights(tmp_path / "one")


def test_a_run_that_one_process_has_to_make_tries_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with an optimizer of one's own; a resumed run goes on with as many."""
    changes = TRIALS | {"CHANGED": 1e-9, "HOPELESS": 0, "TRYING": 2}
    for name, value in {**changes, "GAIN": 0}.items():
        monkeypatch.setattr(worker_count, name, value)
    monkeypatch.setattr(worker_count, "available_cores", lambda: 2)
    threads: list[int] = []

    class Counter(StopAt):
        def on_update(self, update: Update, steps: int) -> None:
            threads.append(torch.get_num_threads())
            super().on_update(update, steps)

    def optimizer(model: Transformer, config: TrainConfig) -> torch.optim.Optimizer:
        return make_optimizer(model, config)

    recipe = eventful(threads=0, steps=18)
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "run", callback=Counter(14), evaluate=None, optimizer=optimizer)
    assert threads == [1] * 8 + [2] * 6
    fit(recipe, tmp_path / "run", callback=Counter(0), evaluate=None, optimizer=optimizer, resume=True)
    assert threads[14:] == [2] * 6  # updates 13 to 18
    assert torch.get_num_threads() == 1
