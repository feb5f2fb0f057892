"""What `fit` takes besides a recipe, and what stands on the screen while it trains."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import allyouneed
from allyouneed import Bundle, ConfigError, ProgressBar, Recipe, Translator, export_bundle, fit
from allyouneed.errors import OutputError
from runs import TINY, StopAt

TABLES = {
    "data": {"vocab_size": 270},
    "model": {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32},
    "train": {"steps": 2, "threads": 1, "batch_tokens": 200, "tensorboard": False},
}
PAIRS = [(f"a {i} dog", f"ein {i} Hund") for i in range(60)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit") / "base"
    fit(TABLES, folder, train=PAIRS, languages="en-de")
    return folder


def test_the_languages_and_the_model_to_start_from_are_arguments(base: Path, tmp_path: Path) -> None:
    assert Bundle.load(base).languages == ("en", "de")
    fit({"train": TABLES["train"]}, tmp_path / "run", train=PAIRS, init_from=base)
    recipe = Recipe.read(tmp_path / "run/recipe.toml")
    assert (recipe.train.init_from, recipe.model.d_model) == (str(base), 8)
    with pytest.raises(ConfigError, match="languages"):
        fit(TABLES, tmp_path / "other", train=PAIRS, languages="german")
    with pytest.raises(ConfigError, match="minutes"):
        fit(TABLES, tmp_path / "other", train=PAIRS, minutes=-1)


def test_a_bar_runs_as_long_as_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit(TABLES, tmp_path / "run", train=PAIRS, callback=ProgressBar())
    assert "train on" in capsys.readouterr().err


def test_what_python_is_told_names_no_option_of_the_command(base: Path) -> None:
    with pytest.raises(OutputError, match="already contains") as refused:
        fit(TABLES, base, train=PAIRS)
    assert "--output" not in str(refused.value)
    assert refused.value.options == ("--output", f"{base}-2")


def test_objects_say_what_they_are(base: Path) -> None:
    bundle = Bundle.load(base)
    assert re.fullmatch(r"Bundle\(en → de, [\d,]+ parameters, \d+ tokens\)", repr(bundle))
    assert repr(Translator(bundle)) == f"Translator({bundle!r}, precision=float32, beam=4)"
    assert re.match(r"\d+\.\d+", allyouneed.__version__)


def test_a_bundle_is_exported_by_its_path(base: Path, tmp_path: Path) -> None:
    proof = export_bundle(base, tmp_path / "out", to="html", sentences=2)
    assert (proof.precision, proof.passed) == ("float32", True)


def test_a_run_is_overwritten_only_if_asked_and_only_by_one_that_has_ended(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(TINY, run, evaluate=None)
    before = (run / "weights.safetensors").read_bytes()
    other = replace(TINY, train=replace(TINY.train, seed=2))
    with pytest.raises(OutputError):
        fit(other, run, evaluate=None)
    with pytest.raises(KeyboardInterrupt):
        fit(other, run, evaluate=None, callback=StopAt(10), overwrite=True)
    assert (run / "weights.safetensors").read_bytes() == before
    fit(other, run, evaluate=None, overwrite=True)
    assert (run / "weights.safetensors").read_bytes() != before
    assert Recipe.read(run / "recipe.toml").train.seed == 2
