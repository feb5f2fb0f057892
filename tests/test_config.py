from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from allyouneed.config import DataConfig, DecodeConfig, ModelConfig, Recipe, TrainConfig
from allyouneed.errors import ConfigError
from allyouneed.recipes import recipe_names, recipe_path


def test_the_defaults_are_the_base_model() -> None:
    config = ModelConfig()
    assert (config.d_model, config.d_ff, config.heads) == (512, 2048, 8)
    assert (config.encoder_layers, config.decoder_layers, config.dropout) == (6, 6, 0.1)
    train = TrainConfig()
    assert (train.steps, train.batch_tokens, train.warmup, train.average) == (100_000, 25_000, 4_000, 5)
    assert (train.label_smoothing, train.clip_norm) == (0.1, 0.0)
    decode = DecodeConfig()
    assert (decode.beam, decode.alpha, decode.extra_length) == (4, 0.6, 50)


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        ModelConfig().d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 1e4}, "vocab_size must be a whole number; got 10000.0"),
        ({"heads": 0}, "heads must be at least 1; got 0"),
        ({"d_model": 10, "heads": 3}, "d_model must be a multiple of heads.*d_model=10, heads=3"),
        ({"d_model": 9, "heads": 3}, "d_model must be even"),
        ({"dropout": 1.0}, "dropout must be at least 0 and less than 1; got 1.0"),
        ({"norm": "sideways"}, 'norm must be one of "post", "pre"; got \'sideways\''),
        ({"pad_id": 37_000}, "pad_id must be an id of the vocabulary of 37000"),
        ({"target_vocab_size": 5}, 'share="all" needs one vocabulary'),
        ({"d_k": 2.5}, "d_k must be a whole number or left out; got 2.5"),
        ({"max_length": True}, "max_length must be a whole number; got True"),
    ],
)
def test_sizes_that_cannot_be_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**settings)  # type: ignore[arg-type]


def test_d_k_and_d_v_free_d_model_of_the_heads() -> None:
    assert ModelConfig(d_model=10, heads=3, d_k=4, d_v=5).d_k == 4


def test_learned_positions_may_have_an_odd_width() -> None:
    assert ModelConfig(d_model=9, heads=3, positions="learned").d_model == 9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainConfig(rate=0), "rate must be more than 0"),
        (lambda: TrainConfig(clip_norm=-1), "clip_norm must be 0"),
        (lambda: TrainConfig(r_drop=-1), "r_drop must be 0"),
        (lambda: TrainConfig(label_smoothing=1), "label_smoothing must be at least 0 and less than 1"),
        (lambda: DecodeConfig(alpha=-0.1), "alpha must be 0 or more"),
        (lambda: DataConfig(train=("one",)), r"train must name a file of pairs or two files, \[source, target\]"),
        (lambda: DataConfig(limit=-1), "limit must be at least 0"),
        (lambda: DataConfig(alphabet="abc"), 'alphabet goes with vocabulary = "characters"'),
        (lambda: DataConfig(train=7), "train must be a string or a list of strings; got 7"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_cannot_be_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # type: ignore[operator]


def recipe_file(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


def test_a_recipe_is_read_and_overridden(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, '[data]\ntrain = ["a", "b"]\n[train]\nsteps = 7\nrate = 2\n')
    recipe = Recipe.read(path, ["train.steps=9", "model.norm=pre", 'data.valid=["c","d"]', "decode.alpha=1"])
    assert recipe.data.train == ("a", "b")
    assert recipe.data.valid == ("c", "d")
    assert (recipe.train.steps, recipe.train.rate, recipe.decode.alpha) == (9, 2.0, 1.0)
    assert recipe.model.norm == "pre"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[model]\nd_modle = 3",
            r'unknown key "d_modle" in \[model\]; known keys: activation, attention_dropout, d_ff',
        ),
        ("[modle]\nd_model = 3", 'unknown key "modle" in the recipe; known keys: clean, data, decode, model, train'),
        ("model = 3", r"\[model\] must be a table of settings; got 3"),
        (
            "[model]\nvocab_size = 3",
            "model.vocab_size follows from the vocabulary; set data.vocab_size instead",
        ),
        ("[model]\nd_model = 2.5", r"\[model\] d_model must be a whole number; got 2.5"),
        ("[model\n", "recipe.toml is not TOML"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe.read(recipe_file(tmp_path, text))


@pytest.mark.parametrize("override", ["steps=3", "train.steps", "=", "train.steps:3"])
def test_an_override_is_written_section_key_value(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="an override is written section.key=value"):
        Recipe.read(recipe_file(tmp_path, ""), [override])


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_are_sound_and_survive_being_written_out(name: str) -> None:
    recipe = Recipe.read(recipe_path(name))
    assert Recipe.of(recipe.tables()) == recipe


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(
        ConfigError,
        match="datse is no recipe: give a file of pairs, a TOML file, or one of dates, en-it, locales, multi30k",
    ):
        recipe_path("datse")


@pytest.mark.parametrize("table", ['vocabulary = "codes"', 'codes = "merges"'])
def test_codes_and_the_vocabulary_made_of_them_come_together(tmp_path: Path, table: str) -> None:
    with pytest.raises(ConfigError, match='codes, a file of merges, goes with vocabulary = "codes"'):
        Recipe.read(recipe_file(tmp_path, f"[data]\n{table}\n"))
