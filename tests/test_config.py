import dataclasses
from dataclasses import FrozenInstanceError
from math import inf, nan
from pathlib import Path

import pytest

from allyouneed.config import CorpusConfig, DataConfig, DecodeConfig, ModelConfig, Recipe, TrainConfig
from allyouneed.config.suggest import FOREIGN
from allyouneed.errors import ConfigError
from allyouneed.recipes import recipe_names, recipe_path


def test_the_defaults_are_the_base_model() -> None:
    config = ModelConfig()
    assert (config.d_model, config.d_ff, config.heads) == (512, 2048, 8)
    assert (config.encoder_layers, config.decoder_layers, config.dropout) == (6, 6, 0.1)
    train = TrainConfig()
    assert (train.steps, train.batch_tokens, train.warmup, train.average_checkpoints) == (100_000, 25_000, 4_000, 5)
    assert (train.label_smoothing, train.clip_norm) == (0.1, 0.0)
    decode = DecodeConfig()
    assert (decode.beam, decode.alpha, decode.extra_length) == (4, 0.6, 50)


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        ModelConfig().d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 1e4}, "vocab_size .*got 10000.0"),
        ({"heads": 0}, "heads .*65536; got 0"),
        ({"d_model": 10, "heads": 3}, "d_model .*heads.*d_model=10, heads=3"),
        ({"d_model": 9, "heads": 3}, "d_model .*even"),
        ({"d_model": 8, "heads": 8, "positions": "rotary"}, "rotary .*2 wide"),
        ({"dropout": 1.0}, "dropout .*0 .*1; got 1.0"),
        ({"norm": "sideways"}, "norm .*got 'sideways'"),
        ({"pad_id": 37_000}, "pad_id .*37000"),
        ({"target_vocab_size": 5}, 'tied_embeddings="all"'),
        ({"d_k": 2.5}, "d_k .*got 2.5"),
        ({"max_length": True}, "max_length .*number; .*True"),
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
        (lambda: TrainConfig(learning_rate=-1), "learning_rate .*0"),
        (
            lambda: TrainConfig(schedule="cosine"),
            "learning_rate .*0, except .*got learning_rate=0.0",
        ),
        (lambda: TrainConfig(clip_norm=-1), "clip_norm .*0"),
        (lambda: TrainConfig(r_drop=-1), "r_drop .*0"),
        (lambda: TrainConfig(label_smoothing=1), "label_smoothing .*0 .*1"),
        (lambda: DecodeConfig(alpha=-0.1), "alpha .*0 .*10; got -0.1"),
        (lambda: DataConfig(columns=("1", "1")), r"columns .*\[source"),
        (
            lambda: DataConfig(train=("one", "two", "three")),
            r"train .*\[source",
        ),
        (lambda: DataConfig(license="mit\ntags: x"), r"license .*got 'mit\\ntags: x'"),
        (lambda: DataConfig(license="CC BY 4.0"), "cc-by-4.0; got 'CC BY 4.0'"),
        (lambda: DataConfig(max_train_samples=-1), "max_train_samples .*0"),
        (lambda: DataConfig(alphabet="abc"), 'vocabulary = "characters"'),
        (lambda: DataConfig(train=7), "train .*got 7"),  # type: ignore[arg-type]
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
    path = recipe_file(tmp_path, '[data]\ntrain = ["a", "b"]\n[train]\nsteps = 7\nlearning_rate = 2\n')
    recipe = Recipe.read(path, ["train.steps=9", "model.norm=pre", 'data.valid=["c","d"]', "decode.alpha=1"])
    assert recipe.data.train == ("a", "b")
    assert recipe.data.valid == ("c", "d")
    assert (recipe.train.steps, recipe.train.learning_rate, recipe.decode.alpha) == (9, 2.0, 1.0)
    assert recipe.model.norm == "pre"


def test_a_list_of_one_file_is_that_file() -> None:
    data = DataConfig(train=("a.tsv",), test=("t.tsv",), corpus=(CorpusConfig(train=("b.tsv",)),))
    assert (data.train, data.test) == ("a.tsv", "t.tsv")
    assert [corpus.train for corpus in data.corpora()] == ["a.tsv", "b.tsv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[model]\nd_modle = 3",
            r'"d_modle" .*mean "d_model"\?',
        ),
        (
            "[modle]\nd_model = 3",
            r'"modle" .*mean "model"\?',
        ),
        ("[foo]\nd_model = 3", '"foo"'),
        ("lr = 3", r'"lr" .*train.learning_rate\?'),
        ("[train]\ndropout = 0.3", r'"dropout" .*model.dropout\?'),
        ("[train]\nno_repeat_ngram_size = 3", r"decode.no_repeat_ngram_size\?"),
        ("[train]\nbatch_size = 3", r"train.batch_tokens\?"),
        ('[model]\n"Hidden-Size" = 3', r'"Hidden-Size" .*model.d_model\?'),
        ("[model]\nnum_layers = 3", r"model.encoder_layers .*model.decoder_layers\?"),
        ("[model]\nvalidate_every = 3", r"train.validate_every\?"),
        ("[model]\nseed = 3", r"data.seed .*train.seed .*decode.seed\?"),
        ('[data]\n"a\\nb" = 3', r'"a\\nb"'),
        ("[data.corpus.train]\nx = 3", "corpus .*got {'train'"),
        ("[train]\nsteps = 1\nsteps = 2", "not TOML"),
        ("train.steps = 1\ntrain.steps.x = 2", "not TOML"),
        (
            f"[train]\nsteps = 0x{'f' * 5000}",
            "steps .*2147483647; .*thousands",
        ),
        (f"[train]\nsteps = {'9' * 5000}", "not TOML"),
        (
            f"[train]\nlearning_rate = {'9' * 400}",
            "learning_rate .*0 .*1000; got 9999",
        ),
        (f"[train]\nsteps = {'[' * 5000}", "not TOML"),
        ('[data]\nvalid = ""', "valid .*got ''"),
        ('[data]\ntest = ["a", ""]', "test .*got"),
        ('[[data.corpus]]\ntrain = ""', "train .*got ''"),
        ('[data]\ntrain = "a\\u0000b"', "train .*UTF-8 without NUL"),
        ("model = 3", r"\[model\] .*got 3"),
        (
            "[model]\nvocab_size = 3",
            "model.vocab_size .*data.vocab_size",
        ),
        ("[model]\nd_model = 2.5", "d_model .*got 2.5"),
        ("[model\n", "recipe.toml is not TOML"),
        ("[train]\nsteps = 3\npause = 2\nvalidate_every = 3", "recipe.toml: .*validate_every"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        Recipe.read(recipe_file(tmp_path, text))
    assert str(error.value).count(f"{tmp_path}/recipe.toml") == 1


@pytest.mark.parametrize("override", ["steps=3", "train.steps", "=", "train.steps:3"])
def test_an_override_is_written_section_key_value(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        Recipe.read(recipe_file(tmp_path, ""), [override])
    with pytest.raises(ConfigError, match=r'recipe\.toml .*train\.seed=2 train\.step=3: .*"step"'):
        Recipe.read(recipe_file(tmp_path, ""), ["train.seed=2", "train.step=3"])


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_are_sound_and_survive_being_written_out(name: str) -> None:
    recipe = Recipe.read(recipe_path(name))
    assert Recipe.from_tables(recipe.tables()) == recipe


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(
        ConfigError,
        match=r"datse .*\bdates\?.*en-it",
    ):
        recipe_path("datse")


@pytest.mark.parametrize("table", ['vocabulary = "codes"', 'bpe_codes = "merges"'])
def test_codes_and_the_vocabulary_made_of_them_come_together(tmp_path: Path, table: str) -> None:
    with pytest.raises(ConfigError, match='bpe_codes.*"codes"'):
        Recipe.read(recipe_file(tmp_path, f"[data]\n{table}\n"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('tokenizer = "a.json"\nvocab_size = 8_000', "vocabulary.* vocab_size=8000$"),
        ('tokenizer = "a.json"\nvocabulary = "unigram"', "vocabulary='unigram'$"),
        ('tokenizer = ["a", "b", "c"]', "both sides"),
    ],
)
def test_what_describes_a_vocabulary_to_learn_is_refused_beside_a_tokenizer(
    tmp_path: Path, table: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe.read(recipe_file(tmp_path, f"[data]\n{table}\n"))


SECTIONS = {name: type(getattr(Recipe(), name)) for name in Recipe().tables()}
NUMBERS = [
    (kind, known)
    for kind in (*SECTIONS.values(), CorpusConfig)
    for known in dataclasses.fields(kind)
    if known.type in (int, float, int | None)
]


def test_every_setting_says_what_it_means() -> None:
    meanings = [
        known.metadata["help"] for kind in (*SECTIONS.values(), CorpusConfig) for known in dataclasses.fields(kind)
    ]
    assert len(meanings) > 90
    assert all(meanings)


@pytest.mark.parametrize(("kind", "known"), NUMBERS, ids=lambda part: getattr(part, "name", None) or part.__name__)
def test_every_number_has_a_range_and_is_refused_outside_of_it(kind: type, known: dataclasses.Field[object]) -> None:
    ends = known.metadata["range"].ends()
    assert {"at_least", "more_than"} & ends.keys()
    assert {"at_most", "less_than"} & ends.keys()
    beyond = (-1, 2**64) if known.type is not float else (-1.0, 1e308, inf, -inf, nan, 10**400)
    for value in beyond:
        with pytest.raises(ConfigError, match=f"{known.name} .*{known.metadata['range']}; got "):
            kind(**{known.name: value})


def test_every_foreign_name_leads_to_a_setting_there_is() -> None:
    ours = {f"{name}.{known.name}" for name, kind in SECTIONS.items() for known in dataclasses.fields(kind)}
    assert {part for full in FOREIGN.values() for part in full.split(" and ")} <= ours


def test_no_foreign_name_is_a_setting_of_the_same_section() -> None:
    for alias, full in FOREIGN.items():
        section, _, _ = full.partition(".")
        assert alias not in {known.name for known in dataclasses.fields(SECTIONS[section])}


def test_a_refusal_of_two_settings_states_both_and_which_is_a_default() -> None:
    with pytest.raises(ConfigError, match=r"ema_decay=0\.9, average_checkpoints=5"):
        TrainConfig(ema_decay=0.9)
    with pytest.raises(ConfigError, match=r"got nbest=9, beam=7$"):
        DecodeConfig(nbest=9, beam=7)


def test_more_translations_widen_the_beam_unless_it_is_given() -> None:
    greedy = DecodeConfig(beam=1)
    assert greedy.with_changes({"nbest": 3}).beam == 3
    assert greedy.with_changes({"nbest": 3, "sample": True}).beam == 1
    assert DecodeConfig(beam=5).with_changes({"nbest": 3}).beam == 5
    with pytest.raises(ConfigError, match=r"got nbest=3, beam=2$"):
        greedy.with_changes({"nbest": 3, "beam": 2})


@pytest.mark.parametrize("value", ["1\n[model]", "1\nsteps = 3", "1\n[[data.corpus]]"])
def test_an_override_cannot_set_more_than_one_value(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"'train\.learning_rate=1"):
        Recipe.read(recipe_file(tmp_path, ""), [f"train.learning_rate={value}"])


@pytest.mark.parametrize(
    "override",
    [
        "train.learning_rate=nan", "train.learning_rate=inf", "train.seed=1e3", "train.steps=2020-01-01",
        "train.steps=[1]",
        "train.device=[]", "train.steps=" + "[" * 5000, "data.corpus=3", "data.corpus=[3]", "data.corpus.train=x",
        "data.train={a=1}", "data.train=a\udcffb", "model={d_model=3}", "model.norm=[]", "decode.copy_spans=[1]",
        'decode.copy_spans=["url"]', "x.y=1",
    ],
)  # fmt: skip
def test_an_override_of_another_type_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError):
        Recipe.read(recipe_file(tmp_path, ""), [override])


def test_a_recipe_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    with pytest.raises(ConfigError, match=r"recipe\.toml"):
        Recipe.read(path)
    path.write_bytes(b"\xff\xfe[train]")
    with pytest.raises(ConfigError, match=r"recipe\.toml .*'utf-8'"):
        Recipe.read(path)
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ConfigError, match=r"recipe\.toml .*10,000,000 bytes"):
        Recipe.read(path)
    with pytest.raises(ConfigError, match="a directory"):
        Recipe.read(tmp_path)
