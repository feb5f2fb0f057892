"""An ensemble: every model is a run of its own, together they translate, and a stopped run goes on where it was."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from allyouneed import Translator, fit
from allyouneed.bundle import Bundle, folders_of_models, model_files
from allyouneed.config import DataConfig
from allyouneed.errors import AllYouNeedError, ConfigError, DataError
from allyouneed.run import run_training
from allyouneed.run.ensemble import further_models
from allyouneed.run.run_folder import remove_run, unrelated
from allyouneed.train import Update
from runs import TINY, Notebook, read_weights

SOURCES = ["1845-01-05", "1999-12-31"]
THREE = replace(TINY, train=replace(TINY.train, ensemble=3, seed=5))


class StopInModel(Notebook):
    """Breaks a run off after an update of the second model."""

    def __init__(self) -> None:
        super().__init__()
        self._models = 0

    def on_train_begin(self, step: int, steps: int) -> None:
        self._models += 1

    def on_update(self, update: Update, steps: int) -> None:
        if (self._models, update.step) == (2, 9):
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ensemble") / "run"
    fit(THREE, folder, evaluate=None)
    return folder


def test_each_model_is_what_a_run_of_its_recipe_makes(run: Path, tmp_path: Path) -> None:
    recipes = [
        replace(THREE, train=replace(THREE.train, ensemble=1)),
        *(one.recipe for one in further_models(THREE, run)),
    ]
    assert len({recipe.train.seed for recipe in recipes}) == 3
    for number, (recipe, folder) in enumerate(zip(recipes, folders_of_models(run), strict=True)):
        fit(recipe, tmp_path / str(number), evaluate=None)
        assert read_weights(tmp_path / str(number)) == read_weights(folder)


def test_a_translator_of_the_folder_averages_all_models(run: Path) -> None:
    folders = folders_of_models(run)
    together = Translator(*map(Bundle.load, folders), precision="float32")
    ensemble = Translator.load(run, device="cpu", precision="float32")
    assert len(ensemble.bundles) == 3
    pairs = [(source, "5 May") for source in SOURCES]
    scores, expected = ([score.log_probability for score in one.score(pairs)] for one in (ensemble, together))
    assert np.allclose(scores, expected, atol=1e-4)
    assert ensemble.translate(SOURCES) == together.translate(SOURCES)


def test_pairs_are_prepared_once(run: Path) -> None:
    assert [path.parent.name for path in run.rglob("prepared.json")] == ["data"]
    assert not list((run / "models").rglob("data"))


def test_translations_depend_on_the_files_of_all_models(run: Path) -> None:
    names = [str(path.relative_to(run)) for path in model_files(run)]
    assert [name for name in names if name.endswith("weights.safetensors")] == [
        "weights.safetensors", "models/2/weights.safetensors", "models/3/weights.safetensors",
    ]  # fmt: skip


def test_a_run_stopped_in_its_second_model_goes_on_to_the_same_models(run: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(THREE, tmp_path / "run", callback=StopInModel(), evaluate=None)
    assert folders_of_models(tmp_path / "run") == [tmp_path / "run"]  # half an ensemble is not one
    notes = Notebook()
    fit(THREE, tmp_path / "run", resume=True, callback=notes, evaluate=None)
    pairs = zip(folders_of_models(tmp_path / "run"), folders_of_models(run), strict=True)
    assert all(read_weights(resumed) == read_weights(straight) for resumed, straight in pairs)
    assert [line for line in notes.lines if "2 of 3" in line]


def test_a_resumed_run_has_as_many_models_as_it_was_started_with(run: Path) -> None:
    fewer = replace(THREE, train=replace(THREE.train, ensemble=2))
    with pytest.raises(ConfigError, match=r"ensemble.*3.*2"):
        fit(fewer, run, resume=True, evaluate=None)


def test_pairs_that_change_between_two_models_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{number}\t{number + 1}\n" for number in range(100)))

    class Change(Notebook):
        def on_message(self, topic: str, text: str) -> None:
            if str(Path("models/2")) in text:
                file.write_text("".join(f"{number}\t{number + 2}\n" for number in range(100)))

    data = DataConfig(train=str(file), vocabulary="characters", held_out=0.2)
    with pytest.raises(DataError):
        fit(replace(THREE, data=data), tmp_path / "run", callback=Change(), evaluate=None)
    assert folders_of_models(tmp_path / "run") == [tmp_path / "run"]


def test_the_time_budget_is_shared(tmp_path: Path) -> None:
    train = replace(TINY.train, ensemble=4, minutes=2.0, steps=1_000)
    assert {one.recipe.train.minutes for one in further_models(replace(TINY, train=train), tmp_path)} == {0.5}
    assert train.minutes_each == 0.5


def test_all_that_an_ensemble_writes_belongs_to_the_run(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    assert unrelated(copy) == []
    remove_run(copy)
    assert not copy.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", *(f'{{"models": {number}}}' for number in ('"two"', 0, -1, 1, 2.5, 9, 10**12))]
)
def test_a_damaged_ensemble_is_refused(run: Path, tmp_path: Path, content: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "ensemble.json").write_text(content)
    with pytest.raises(AllYouNeedError) as refusal:
        Translator.load(copy)
    assert str(copy) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_torchrun_trains_no_ensemble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ConfigError, match=r"ensemble=3"):
        run_training(THREE, tmp_path / "run")
