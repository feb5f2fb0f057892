"""What version 0.1 wrote keeps working: two bundles and their recipes, stored as it left them."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from allyouneed import ConfigError, Recipe, Translator, fit
from allyouneed.legacy import KEYS, peak_from_factor, upgrade_recipe, upgrade_weight_name
from allyouneed.train.schedule import learning_rate_at, paper_learning_rate

V01 = Path(__file__).parent / "v01"


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_bundle_of_version_0_1_translates_as_it_did(name: str) -> None:
    lines = (V01 / name / "translations.jsonl").read_text(encoding="utf-8").splitlines()
    then = [json.loads(line) for line in lines]
    translator = Translator.load(V01 / name, precision="float32")
    now = list(translator.translations([row["source"] for row in then]))
    assert [translation.text for translation in now] == [row["text"] for row in then]
    assert [translation.confidence for translation in now] == pytest.approx(
        [row["confidence"] for row in then], abs=2e-6
    )


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_recipe_of_version_0_1_keeps_every_value(name: str) -> None:
    path = V01 / name / "recipe.toml"
    then = tomllib.loads(path.read_text(encoding="utf-8"))
    now = Recipe.read(path).tables()
    for section, table in then.items():
        for key, value in table.items():
            if (section, key) not in (("decode", "guard"), ("train", "rate")):
                assert now[section][KEYS.get(section, {}).get(key, key)] == (
                    tuple(value) if isinstance(value, list) else value
                )
    assert now["decode"]["retry_repetition"] == now["decode"]["copy_untranslatable"] == then["decode"]["guard"]


def test_the_learning_rate_follows_the_same_curve() -> None:
    recipe = Recipe.read(V01 / "two" / "recipe.toml")
    assert recipe.train.schedule == "paper"
    for step in (1, 5, 10, 30, 40):
        assert learning_rate_at(step, recipe.train, d_model=16) == 0.35 * paper_learning_rate(
            step, d_model=16, warmup=10
        )


def test_a_factor_of_the_papers_rate_becomes_a_peak() -> None:
    assert peak_from_factor(0.35, d_model=64, warmup=100) == 0.004375
    assert peak_from_factor("fast", d_model=64, warmup=100) == "fast"  # refused where settings are checked


def test_old_and_new_name_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.pause is the name that train\.validate_every had in version 0\.1"):
        upgrade_recipe({"train": {"pause": 10, "validate_every": 10}})


def test_weights_are_found_under_their_new_names() -> None:
    assert upgrade_weight_name("decoder.layers.0.around_cross_attention.norm.gain") == (
        "decoder.layers.0.cross_attention_residual.norm.gain"
    )
    assert upgrade_weight_name("encoder.layers.1.attention.query.weight") == "encoder.layers.1.attention.query.weight"


def test_no_old_name_is_a_setting_again() -> None:
    tables = Recipe().tables()
    for section, renamed in KEYS.items():
        assert not renamed.keys() & tables[section].keys()
        assert set(renamed.values()) <= tables[section].keys()


def test_a_run_of_version_0_1_is_not_resumed(tmp_path: Path) -> None:
    shutil.copytree(V01 / "one", tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(ConfigError, match=r"run is a run of version 0\.1, which cannot be resumed"):
        fit(Recipe.read(V01 / "one" / "recipe.toml"), tmp_path / "run", resume=True)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
