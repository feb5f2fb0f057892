"""The reference of settings: on the command line, as commented TOML, and as a JSON Schema."""

import json
import re
import tomllib
from collections.abc import Callable
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pytest

from allyouneed import ConfigError, Recipe
from allyouneed.config.reference import (
    SCHEMA,
    SECTIONS,
    commented_recipe,
    find_settings,
    recipe_schema,
    refuse_misspelt,
)
from allyouneed.machine.files import to_json
from allyouneed.recipes import paper_names, recipe_names, recipe_path
from shell import run_here

NAMES = [*recipe_names(), *paper_names()]
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Return True if `value` satisfies a schema of the few keywords that ours has."""
    if "anyOf" in schema:
        return any(is_valid(value, part) for part in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if not isinstance(value, TYPES[schema["type"]]) or (type(value) is bool and schema["type"] != "boolean"):
        return False
    if isinstance(value, dict):
        known = schema["properties"]
        return all(key in known and is_valid(item, known[key]) for key, item in value.items())
    if isinstance(value, list):
        return all(is_valid(item, schema["items"]) for item in value)
    ends: dict[str, Callable[[Any, Any], bool]] = {
        "minimum": ge,
        "exclusiveMinimum": gt,
        "maximum": le,
        "exclusiveMaximum": lt,
    }
    return all(compare(value, schema[end]) for end, compare in ends.items() if end in schema)


def test_the_shipped_schema_is_that_of_the_settings() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == to_json(recipe_schema(), indent=1) + "\n", "run docs/make/schema.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_recipe_satisfies_the_schema_that_its_first_line_names(name: str) -> None:
    path = recipe_path(name)
    text = path.read_text(encoding="utf-8")
    schema = (path.parent / text.split("\n")[0].removeprefix("#:schema ")).resolve()
    assert schema == SCHEMA
    assert is_valid(tomllib.loads(text), json.loads(schema.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "[modle]", "[model]\nd_modle = 3", "[model]\nnorm = \"sideways\"", "[train]\nsteps = 2.5",
        "[train]\nsteps = 0",
        "[train]\nlabel_smoothing = 1.0", "[data]\ntrain = [1]", "[[data.corpus]]\nweight = 0",
        "[train]\ntensorboard = 1",
    ],
)  # fmt: skip
def test_what_a_recipe_refuses_the_schema_refuses(text: str) -> None:
    with pytest.raises(ConfigError):
        Recipe.from_tables(tomllib.loads(text))
    assert not is_valid(tomllib.loads(text), recipe_schema())


@pytest.mark.parametrize("name", NAMES)
def test_a_commented_recipe_is_the_same_recipe(name: str, tmp_path: Path) -> None:
    recipe = Recipe.read(recipe_path(name))
    (tmp_path / "recipe.toml").write_text(commented_recipe(recipe), encoding="utf-8")
    assert Recipe.read(tmp_path / "recipe.toml") == recipe
    assert is_valid(tomllib.loads(commented_recipe(recipe)), recipe_schema())


def test_settings_are_found_by_full_name_by_key_and_by_section() -> None:
    assert [setting.name for setting in find_settings("train.warmup")] == ["train.warmup"]
    assert [setting.name for setting in find_settings("seed")] == ["data.seed", "train.seed", "decode.seed"]
    assert {setting.section for setting in find_settings("clean")} == {"clean"}
    assert find_settings("warmupp") == []


def test_few_settings_are_listed_and_none_that_only_imported_models_need() -> None:
    names = [setting.name for section in SECTIONS for setting in find_settings(section)]
    assert len(names) == len(set(names)) <= 106
    assert "decode.forced_eos" not in names
    assert [setting.name for setting in find_settings("decode.forced_eos")] == ["decode.forced_eos"]


@pytest.mark.parametrize("folder", ["docs", "benchmarks", "src"])
def test_every_setting_that_a_page_or_a_benchmark_gives_a_value_exists(folder: str) -> None:
    root = Path(__file__).parents[2]
    known = {f"{section}.{key}" for section, table in Recipe().tables().items() for key in table}
    for path in [root / "README.md", *root.glob(f"{folder}/**/*.md"), *root.glob(f"{folder}/**/*.py")]:
        named = re.findall(rf"\b(?:{'|'.join(SECTIONS)})\.[a-z_]+(?==)", path.read_text(encoding="utf-8"))
        assert known.issuperset(named), (path.name, set(named) - known)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("warmpu", "train.warmup"),
        ("train.rate", "train.learning_rate"),
        ("train.dropout", "model.dropout"),
        ("train.xyzzy", r'"xyzzy" .*\[train\]; .*accumulate_steps'),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_one_that_was_meant(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        refuse_misspelt(name)


def test_config_prints_settings_recipes_and_the_schema(tmp_path: Path) -> None:
    one = run_here("config", "train.warmup", cwd=tmp_path).stdout.decode()
    assert one.startswith("train.warmup = 4000\n    Updates over which")
    everything = run_here("config", cwd=tmp_path).stdout.decode()
    assert all(f"\n{section}." in f"\n{everything}" for section in SECTIONS)
    recipe = run_here("config", "dates", "train.steps=7", cwd=tmp_path).stdout.decode()
    assert tomllib.loads(recipe)["train"]["steps"] == 7
    assert json.loads(run_here("config", "--schema", cwd=tmp_path).stdout) == recipe_schema()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.rate"], " train.learning_rate?"),
        (["datse"], " dates?"),
        (["nowhere.toml"], "nowhere.toml "),
        (["train.steps", "train.steps=3"], "train.steps=3 "),
        (["dates", "--schema"], "leave out dates"),
    ],
)
def test_config_refuses_what_is_neither_setting_nor_recipe(words: list[str], message: str, tmp_path: Path) -> None:
    result = run_here("config", *words, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr.decode()
