"""Whole runs, small ones."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed import Bundle, ConfigError, DataError, OutputError, Recipe, Translator, fit
from allyouneed.train import Pause, Update
from allyouneed.train.checkpoint import checkpoints

TINY = Recipe.of(
    {
        "data": {
            "train": "dates:train", "valid": "dates:valid", "limit": 200, "valid_limit": 20, "vocabulary": "characters",
        },
        "model": {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32},
        "train": {"steps": 12, "batch_tokens": 200, "warmup": 4, "pause": 4, "average": 2, "threads": 1},
    }
)  # fmt: skip


class Notebook:
    """A `Watch` that notes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pauses: list[Pause] = []

    def tell(self, topic: str, text: str) -> None:
        self.lines.append(f"{topic}: {text}")

    def updated(self, update: Update) -> None:
        pass

    def paused(self, pause: Pause) -> None:
        self.pauses.append(pause)


class StopAt(Notebook):
    """A `Watch` that stops the run, as Ctrl-C would, right after some update."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def updated(self, update: Update) -> None:
        if update.step == self._step:
            raise KeyboardInterrupt


def weights_of(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def test_a_run_leaves_a_bundle_and_a_trail(tmp_path: Path) -> None:
    watch = Notebook()
    result = fit(TINY, tmp_path / "run", watch=watch, judge=lambda bundle: {"luck": 7.0})
    loaded = Bundle.load(tmp_path / "run")
    for ours, theirs in zip(result.model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert watch.lines == [
        "data: 200 pairs to train on, 20 to validate, vocabulary of 42",
        "model: 1+1 layers, d_model 8, d_ff 8, 2 heads: 1,568 parameters",
    ]
    assert [pause.step for pause in watch.pauses] == [4, 8, 12]
    assert [json.loads(line)["step"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()] == [
        4,
        8,
        12,
    ]
    assert [path.stem for path in checkpoints(tmp_path / "run/checkpoints")] == ["00000008", "00000012"]
    assert Recipe.read(tmp_path / "run/recipe.toml") == TINY
    assert "Trained on 200 pairs for 12 updates." in loaded.card
    assert "Validation luck: 7.00." in loaded.card
    assert not result.model.training


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path: Path) -> None:
    other = replace(TINY, train=replace(TINY.train, seed=2))
    for name, recipe in (("a", TINY), ("b", TINY), ("c", other)):
        fit(recipe, tmp_path / name, watch=Notebook())
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b")
    assert weights_of(tmp_path / "a") != weights_of(tmp_path / "c")


@pytest.mark.parametrize("step", [2, 4, 7, 11])
def test_a_run_that_stopped_and_went_on_ends_as_one_that_never_stopped(tmp_path: Path, step: int) -> None:
    recipe = replace(TINY, model=replace(TINY.model, dropout=0.2))
    fit(recipe, tmp_path / "straight", watch=Notebook())
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "stopped", watch=StopAt(step))
    fit(recipe, tmp_path / "stopped", watch=Notebook(), resume=True)
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "straight")


def test_validating_changes_nothing(tmp_path: Path) -> None:
    """Neither the data's order nor dropout's draws depend on how often one looks."""
    recipe = replace(TINY, model=replace(TINY.model, dropout=0.2), train=replace(TINY.train, average=1))
    fit(recipe, tmp_path / "often", watch=Notebook())
    fit(replace(recipe, train=replace(recipe.train, pause=12)), tmp_path / "once", watch=Notebook())
    assert weights_of(tmp_path / "often") == weights_of(tmp_path / "once")


def test_going_on_with_other_settings_or_other_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", watch=StopAt(6))
    other = replace(TINY, train=replace(TINY.train, batch_tokens=300))
    with pytest.raises(ConfigError, match=r"begun with train.batch_tokens=200, not 300"):
        fit(other, tmp_path / "run", watch=Notebook(), resume=True)
    with pytest.raises(ConfigError, match="does not exist"):
        fit(TINY, tmp_path / "nowhere", watch=Notebook(), resume=True)


def test_going_on_with_changed_files_is_refused(tmp_path: Path) -> None:
    recipe = recipe_of_files(tmp_path, ["ab"] * 30, ["ba"] * 30)
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "run", watch=StopAt(6))
    (tmp_path / "target").write_text("ab\n" * 30)
    with pytest.raises(DataError, match="training pairs are not those"):
        fit(recipe, tmp_path / "run", watch=Notebook(), resume=True)


def test_an_earlier_run_is_not_replaced(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run", watch=Notebook())
    before = weights_of(tmp_path / "run")
    with pytest.raises(OutputError, match="run exists already"):
        fit(TINY, tmp_path / "run", watch=Notebook())
    assert weights_of(tmp_path / "run") == before


def recipe_of_files(folder: Path, sources: Iterable[str], targets: Iterable[str], **data: object) -> Recipe:
    (folder / "source").write_text("".join(f"{line}\n" for line in sources))
    (folder / "target").write_text("".join(f"{line}\n" for line in targets))
    tables = TINY.tables()
    tables["data"] = {"train": ["source", "target"], "folder": str(folder), "vocabulary": "characters"} | data
    return Recipe.of(tables)


def test_it_learns_to_copy_from_files_of_text(tmp_path: Path) -> None:
    words = [a + b + c for a in "abcde" for b in "abcde" for c in "abcde"]
    recipe = recipe_of_files(tmp_path, words, words, vocabulary="bpe", vocab_size=262)
    recipe = replace(
        recipe,
        model=replace(recipe.model, d_model=32, d_ff=64, dropout=0.0),
        train=replace(recipe.train, steps=300, warmup=50, pause=300, rate=0.5, label_smoothing=0.0, cooldown=150),
    )
    translator = Translator(fit(recipe, tmp_path / "run", watch=Notebook()))
    assert translator.translate(words[:40]) == words[:40]


def test_pairs_that_cannot_be_used_are_counted_or_refused(tmp_path: Path) -> None:
    watch = Notebook()
    fit(recipe_of_files(tmp_path, ["a", "", "b" * 40], ["a", "b", "a"]), tmp_path / "run", watch=watch)
    assert watch.lines[0] == "data: 1 pairs to train on, 2 dropped as empty or too long, vocabulary of 5"
    with pytest.raises(DataError, match="data.train has no pair to use: 1 read, 1 dropped"):
        fit(recipe_of_files(tmp_path, [""], ["a"]), tmp_path / "other", watch=watch)
    with pytest.raises(DataError, match="data.train, pair 2: 'x' at place 1 of 'x' is not in the vocabulary"):
        fit(recipe_of_files(tmp_path, "ax", "aa", alphabet="a"), tmp_path / "other", watch=watch)
    assert not (tmp_path / "other").exists()


def test_a_killed_run_leaves_a_loadable_checkpoint_and_goes_on(tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "allyouneed", "train", str(tmp_path / "recipe.toml")),
        *("--output", str(tmp_path / "run")),
    ]
    endless = replace(TINY, train=replace(TINY.train, steps=100_000, pause=3))
    (tmp_path / "run").mkdir()
    fit_to = tmp_path / "recipe.toml"
    import tomli_w

    fit_to.write_text(tomli_w.dumps(endless.tables()))
    (tmp_path / "run").rmdir()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run/config.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert isinstance(Translator.load(tmp_path / "run")("1845-01-05"), str)
    newest = int(checkpoints(tmp_path / "run/checkpoints")[-1].stem)
    watch = StopAt(newest + 1)
    with pytest.raises(KeyboardInterrupt):
        fit(endless, tmp_path / "run", watch=watch, resume=True)
    assert watch.lines[-1] == f"resume: going on after update {newest:,}"
