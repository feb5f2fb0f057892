"""Models of an ensemble that train at the same time are those that train one after another, whatever happens."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import SGD

from allyouneed import Recipe, Transformer, fit
from allyouneed.bundle import Bundle, folders_of_models
from allyouneed.config import TrainConfig
from allyouneed.errors import ConfigError, Interrupted, TrainingError
from allyouneed.evaluation import evaluate_greedily
from allyouneed.machine.device import available_cores
from allyouneed.run import Evaluation, Hooks, Stopwatch, parallel_models, processes
from allyouneed.run.checkpoint import CHECKPOINT_FILE, read_state
from allyouneed.run.ensemble import further_models
from allyouneed.run.setup import most_parallel_models
from allyouneed.run.worker_count import choose_cores
from allyouneed.train import Update
from forked_workers import ForkedWorker, children_with, forking_workers, is_running, kill_worker, start_run
from runs import TINY, Notebook, eventful, read_weights
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.slow


def ensemble(models: int, at_once: int, recipe: Recipe = TINY, **train: Any) -> Recipe:
    """Let a recipe train an ensemble, with a core for each model that trains at the same time."""
    settings = {"ensemble": models, "parallel_models": at_once, "threads": at_once, "seed": 5, **train}
    return replace(recipe, train=replace(recipe.train, **settings))


ENDLESS = ensemble(2, 2, steps=1_000_000)


@pytest.fixture
def forked() -> Iterator[None]:
    """Let runs fork their processes, where their start is not what is tested."""
    with forking_workers():
        yield


def second(run: Path) -> Path:
    return run / "models/2"


def updates(folder: Path) -> int:
    return read_state(folder / CHECKPOINT_FILE).step


def weights(run: Path) -> list[bytes]:
    return [read_weights(folder) for folder in folders_of_models(run)]


class OnceBothTrain(Notebook):
    """Does something once, after an update of the first model, when the second one has been validated."""

    def __init__(self, run: Path, act: Callable[[], None]) -> None:
        super().__init__()
        self._run, self._act = run, act
        self.acted_after = 0

    def on_update(self, update: Update, steps: int) -> None:
        assert not self.acted_after or update.step < self.acted_after + 1_000, "the run goes on"
        if not self.acted_after:
            self.acted_after = update.step
            wait_until((second(self._run) / "config.json").exists)
            self._act()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def require_same_end(run: Path, tmp_path: Path) -> None:
    """Resume a stopped run of `ENDLESS`; require the models of a run that never stopped, one after another."""
    steps = max(updates(run), updates(second(run))) + 6
    fit(ensemble(2, 2, steps=steps), run, resume=True, evaluate=None)
    fit(ensemble(2, 1, steps=steps), tmp_path / "straight", evaluate=None)
    assert weights(run) == weights(tmp_path / "straight")


def test_four_models_two_at_a_time_are_those_of_one_after_another(forked: None, tmp_path: Path) -> None:
    recipe = eventful(optimizer="muon")
    notes = Notebook()
    fit(ensemble(4, 2, recipe), tmp_path / "two", callback=notes, evaluate=None)
    fit(ensemble(4, 1, recipe), tmp_path / "one", evaluate=None)
    assert len(weights(tmp_path / "two")) == 4
    assert weights(tmp_path / "two") == weights(tmp_path / "one")
    assert [line for line in notes.lines if str(tmp_path / "two/models") in line]


def test_a_signal_saves_all_models_and_the_resumed_run_ends_with_the_same_bits(forked: None, tmp_path: Path) -> None:
    run = tmp_path / "run"
    callback = OnceBothTrain(run, interrupt)
    with pytest.raises(Interrupted) as stopped:
        fit(ENDLESS, run, callback=callback, evaluate=None)
    assert stopped.value.signal == signal.SIGINT
    assert updates(run) in (callback.acted_after, callback.acted_after + 1)
    assert folders_of_models(run) == [run]  # half an ensemble is not one
    require_same_end(run, tmp_path)


def test_a_signal_reaches_the_others_after_the_first_model_has_ended(
    forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, wait = tmp_path / "run", ForkedWorker.wait

    def interrupted(self: ForkedWorker, timeout: float | None = None) -> int:
        wait_until((second(run) / "config.json").exists)
        monkeypatch.undo()
        interrupt()
        return wait(self, timeout)

    monkeypatch.setattr(ForkedWorker, "wait", interrupted)
    monkeypatch.setattr(parallel_models, "further_models", lambda recipe, output: further_models(ENDLESS, output))
    with pytest.raises(Interrupted):
        fit(ensemble(2, 2), run, evaluate=None)
    assert updates(run) == TINY.train.steps
    require_same_end(run, tmp_path)


def test_a_killed_process_ends_the_run_with_one_message_after_all_others_are_saved(
    forked: None, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    callback = OnceBothTrain(run, kill_worker)
    with pytest.raises(TrainingError, match=r"model 2 .*signal 9"):
        fit(ENDLESS, run, callback=callback, evaluate=None)
    assert updates(run) >= callback.acted_after
    require_same_end(run, tmp_path)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_no_process_outlives_a_killed_run(tmp_path: Path, is_stopped: bool) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = start_run(ENDLESS, tmp_path / "run", temporary)
    wait_until((second(tmp_path / "run") / "config.json").exists, process)
    (other,) = children_with("model_process", process.pid)
    os.kill(other, signal.SIGSTOP if is_stopped else signal.SIGCONT)
    process.kill()
    process.join(PATIENCE)
    wait_until(lambda: not is_running(other))
    assert list(temporary.iterdir()) == []


def test_a_stopped_process_does_not_keep_a_run_from_ending(forked: None, tmp_path: Path) -> None:
    def stop_and_interrupt() -> None:
        ForkedWorker.latest.send_signal(signal.SIGSTOP)
        interrupt()

    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        fit(ENDLESS, run, callback=OnceBothTrain(run, stop_and_interrupt), evaluate=None)
    require_same_end(run, tmp_path)


def test_an_error_of_another_process_is_the_error_of_the_run(forked: None, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(ensemble(2, 2), run, evaluate=None)
    (second(run) / CHECKPOINT_FILE).write_bytes(b"damaged")
    with pytest.raises(TrainingError) as failure:
        fit(ensemble(2, 2, steps=1_000_000), run, resume=True, evaluate=None)
    assert str(second(run) / CHECKPOINT_FILE) in str(failure.value)
    assert "\n" not in str(failure.value)
    assert updates(run) > TINY.train.steps


def test_a_process_that_cannot_start_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "python_command", lambda *_: [sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(TrainingError, match=r"model 2 .*code 7"):
        fit(ENDLESS, tmp_path / "run", evaluate=None)
    assert updates(tmp_path / "run")


def test_a_finished_ensemble_starts_no_process(forked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(ensemble(2, 2), tmp_path / "run", evaluate=None)
    before = weights(tmp_path / "run")
    monkeypatch.setattr(processes, "python_command", lambda *_: ["no-such-program"])
    with monkeypatch.context() as patch:
        patch.setattr(parallel_models, "start_process", None)
        fit(ensemble(2, 2), tmp_path / "run", resume=True, evaluate=None)
    assert weights(tmp_path / "run") == before


def test_the_time_of_all_models_begins_with_the_command(forked: None, tmp_path: Path) -> None:
    begun = time.monotonic() - 100
    fit(ensemble(2, 2, minutes=60.0), tmp_path / "run", stopwatch=Stopwatch(begun=begun))
    for folder in folders_of_models(tmp_path / "run"):
        assert 100 < read_state(folder / CHECKPOINT_FILE).used_seconds < time.monotonic() - begun
        assert "exact" in json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["scores"]


@pytest.mark.parametrize(
    ("models", "at_once", "minutes"), [(1, 1, 12), (2, 2, 12), (4, 2, 6), (3, 2, 6), (4, 1, 3), (4, 4, 12), (5, 3, 6)]
)
def test_models_that_train_one_after_another_share_the_minutes(models: int, at_once: int, minutes: float) -> None:
    train = TrainConfig(ensemble=models, parallel_models=at_once, minutes=12)
    assert train.minutes_each == minutes
    assert {one.recipe.train.minutes for one in further_models(replace(TINY, train=train), Path())} <= {minutes}


def test_more_models_at_once_than_there_are_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"parallel_models=3.*ensemble=2"):
        TrainConfig(ensemble=2, parallel_models=3)


@pytest.mark.parametrize(
    ("threads", "at_once", "cores", "each"), [(8, 2, 4, 4), (8, 3, 2, 2), (2, 2, 1, 1), (1, 2, 1, 0)]
)
def test_models_at_the_same_time_share_the_cores(threads: int, at_once: int, cores: int, each: int) -> None:
    model = Transformer(replace(TINY.model, vocab_size=50, d_model=512, d_ff=2048))
    chosen = choose_cores(TrainConfig(threads=threads), model, can_divide=True, share=at_once)
    assert (chosen.first, chosen.most, chosen.threads) == (1, cores, each)


def test_as_many_models_train_at_the_same_time_as_there_are_cores_and_processes_can_train_them() -> None:
    def most(hooks: Hooks | None = None, device: str = "cpu", **train: Any) -> int:
        return most_parallel_models(TrainConfig(**train), torch.device(device), hooks or Hooks())

    def evaluate(bundle: Bundle, pairs: object) -> Evaluation:
        raise NotImplementedError

    assert most(threads=3) == most(Hooks(evaluate=evaluate_greedily), threads=3) == 3
    assert most() == available_cores()
    assert most(threads=3, workers=1) == most(threads=3, workers=2) == most(device="meta", threads=3) == 1
    assert most(Hooks(evaluate=evaluate), threads=3) == most(Hooks(evaluate=partial(evaluate_greedily)), threads=3) == 1
    assert most(Hooks(stopwatch=Stopwatch(lambda: 0.0)), threads=3) == 1
    assert most(Hooks(optimizer=lambda model, _: SGD(model.parameters())), threads=3) == 1


def test_what_other_processes_cannot_train_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"parallel_models=2"):
        fit(ENDLESS, tmp_path / "run", evaluate=lambda *_: Evaluation({}))
    assert not (tmp_path / "run").exists()
