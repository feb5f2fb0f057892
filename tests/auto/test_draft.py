import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Bundle, ConfigError, Recipe, fit
from allyouneed.auto import Draft
from allyouneed.auto.choice_rules import (
    LARGEST_WITHOUT_GPU,
    MODEL_SIZES,
    Corpus,
    choose_size,
    peak_learning_rate,
    round_to_two_digits,
)
from allyouneed.auto.rules import RULES
from allyouneed.auto.statistics import measure_pairs
from allyouneed.data.pairs import Pair
from allyouneed.train.schedule import learning_rate_at
from messages import numbers_in
from runs import TINY, Notebook, read_weights

SMALL = Corpus(pairs=30_000, tokens=500_000, longest=60, has_valid=True, exact=False, gpu=False)


def test_the_rows_stand_in_order_and_cover_every_corpus() -> None:
    assert [size.pairs for size in MODEL_SIZES] == sorted(size.pairs for size in MODEL_SIZES)
    for pairs in (1, 3_000, 30_000, 10**9):
        size, why = choose_size(replace(SMALL, pairs=pairs, gpu=True))
        assert size in MODEL_SIZES
        assert f"{pairs:,} pairs" in why


def test_thirty_thousand_pairs_get_the_size_that_did_well_on_as_many() -> None:
    """3+3 layers of 256 on Multi30K: docs/training.md."""
    recipe, choices = Draft({}).complete(SMALL)
    model = recipe.model
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.dropout) == (3, 3, 256, 0.25)
    assert recipe.train.steps * recipe.train.batch_tokens > 10 * SMALL.tokens
    assert all(str(choice).count("(") >= 1 for choice in choices)


def test_everything_chosen_is_told_and_repeats_the_recipe() -> None:
    recipe, choices = Draft({}).complete(SMALL)
    chosen = {name: value for choice in choices for name, value in choice.settings.items()}
    tables: dict[str, dict[str, object]] = {}
    for name, value in chosen.items():
        section, _, key = name.partition(".")
        tables.setdefault(section, {})[key] = value
    assert Recipe.from_tables(tables) == recipe


def test_what_is_given_stays_and_the_rest_follows_it() -> None:
    draft = Draft({"model": {"d_model": 32}, "train": {"steps": 500, "batch_tokens": 4_000}})
    recipe, choices = draft.complete(SMALL)
    assert (recipe.model.d_model, recipe.train.steps, recipe.train.batch_tokens) == (32, 500, 4_000)
    assert (recipe.train.warmup, recipe.train.cooldown) == (25, 475)
    chosen_names = {name for choice in choices for name in choice.settings}
    assert not chosen_names & {"model.d_model", "train.steps", "train.batch_tokens"}


@pytest.mark.parametrize(("schedule", "cooldown"), [("paper", 475), ("cosine", 0), ("inverse-sqrt", 475)])
def test_the_highest_rate_is_the_same_whatever_the_schedule(schedule: str, cooldown: int) -> None:
    recipe, _ = Draft({"train": {"steps": 500, "schedule": schedule}}).complete(SMALL)
    rates = [learning_rate_at(step, recipe.train, d_model=recipe.model.d_model) for step in range(1, 501)]
    assert max(rates) == pytest.approx(peak_learning_rate(recipe.model.d_model, "muon"), rel=0.06)
    assert recipe.train.cooldown == cooldown


def test_a_new_model_with_a_time_budget_has_the_younger_parts_unless_the_user_sets_others() -> None:
    with_budget = replace(SMALL, minutes=10.0)
    parts = {
        name: Draft(tables, inherited).complete(corpus)[0].model
        for name, tables, inherited, corpus in (
            ("budget", {}, {}, with_budget),
            ("no budget", {}, {}, SMALL),
            ("set", {"model": {"positions": "learned"}}, {}, with_budget),
            ("fine-tuned", {}, Recipe().tables()["model"], with_budget),
        )
    }
    assert {name: (model.positions, model.query_key_norm) for name, model in parts.items()} == {
        "budget": ("rotary", True),
        "no budget": ("sinusoidal", False),
        "set": ("learned", True),
        "fine-tuned": ("sinusoidal", False),
    }


def test_adam_is_led_more_slowly_than_muon() -> None:
    with_adam, _ = Draft({"train": {"optimizer": "adam"}}).complete(SMALL)
    assert with_adam.train.learning_rate == Draft({}).complete(SMALL)[0].train.learning_rate / 2


def test_what_the_rest_of_the_corpus_decides() -> None:
    assert choose_size(replace(SMALL, pairs=10**7))[0].d_model == LARGEST_WITHOUT_GPU.d_model
    assert Draft({}).complete(replace(SMALL, longest=3_000))[0].train.batch_tokens == 3_000
    assert Draft({}).complete(replace(SMALL, has_valid=False))[0].train.patience == 0
    assert Draft({}).complete(replace(SMALL, exact=True))[0].model.dropout == 0.0


@pytest.mark.parametrize(("number", "round_one"), [(7, 7), (1_234, 1_200), (98_765, 99_000)])
def test_numbers_are_rounded_for_people(number: int, round_one: int) -> None:
    assert round_to_two_digits(number) == round_one


def make_draft(recipe: Recipe, **train: object) -> Draft:
    tables = recipe.tables()
    return Draft.from_tables({"data": tables["data"], "train": {"threads": 1, "tensorboard": False, **train}})


@pytest.mark.slow
def test_a_draft_runs_and_goes_on_with_what_it_chose(tmp_path: Path) -> None:
    draft, watch = make_draft(TINY, steps=6, patience=0), Notebook()
    fit(draft, tmp_path / "run", callback=watch)
    chosen = Recipe.read(tmp_path / "run/recipe.toml")
    assert (chosen.model.d_model, chosen.train.steps) == (64, 6)
    assert [line for line in watch.lines if line.startswith("auto: model.d_model=64")]
    assert [line for line in watch.lines if line.startswith("time: about ") and "6 updates of" in line]
    again = Notebook()
    fit(draft, tmp_path / "run", callback=again, resume=True)
    (line,) = again.lines
    assert "finished" in line
    assert numbers_in(line) == [6]
    with pytest.raises(ConfigError, match="train.learning_rate was .*, is 0.5"):
        fit(make_draft(TINY, steps=6, patience=0, learning_rate=0.5), tmp_path / "run", resume=True)


@pytest.mark.slow
def test_fine_tuning_begins_with_the_weights_and_the_vocabulary_of_another(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "general")
    tables = {
        **TINY.tables(),
        "train": {**TINY.tables()["train"], "init_from": str(tmp_path / "general"), "learning_rate": 1e-9},
    }
    special = Recipe.from_tables({**tables, "data": {**tables["data"], "max_train_samples": 50}})
    result = fit(special, tmp_path / "special")
    before = Bundle.load(tmp_path / "general")
    assert result.source_tokenizer.pieces(range(42)) == before.source_tokenizer.pieces(range(42))
    for ours, other in zip(result.model.parameters(), before.model.parameters(), strict=True):
        assert (ours - other).abs().max() < 1e-6
    assert "starting from" in result.card
    assert read_weights(tmp_path / "special") != read_weights(tmp_path / "general")


@pytest.mark.parametrize("auto", [False, True])
def test_fine_tuning_keeps_the_search_and_the_license_of_the_model_unless_the_recipe_says_otherwise(
    bundle: Bundle, tmp_path: Path, auto: bool
) -> None:
    decode = replace(bundle.decode, beam=3, alpha=0.3, forced_eos=True)
    card = "---\nlicense: cc-by-4.0\n---\n\n# A model\n"
    replace(bundle, decode=decode, card=card).save(tmp_path / "general")
    start = {"train": {"init_from": str(tmp_path / "general")}, "data": {"train": "dates:train"}}

    def complete(tables: dict[str, Any]) -> Recipe:
        draft = Draft.from_tables(tables)
        return draft.complete(SMALL)[0] if auto else draft.recipe

    kept = complete(start)
    assert kept.decode == decode
    assert kept.data.license == "cc-by-4.0"
    other = complete({**start, "data": {**start["data"], "license": "mit"}, "decode": {"beam": 4}})
    assert (other.decode.beam, other.decode.alpha, other.data.license) == (4, 0.3, "mit")


@pytest.mark.slow
@pytest.mark.parametrize("auto", [False, True])
def test_a_run_that_started_from_a_model_is_resumed_without_it(tmp_path: Path, auto: bool) -> None:
    def fine_tune(steps: int, resumed: Recipe | None = None) -> Bundle:
        train = {**TINY.tables()["train"], "init_from": str(tmp_path / "general"), "steps": steps}
        data = {key: value for key, value in TINY.tables()["data"].items() if key != "license"}
        draft = Draft.from_tables({"data": data, "train": train}, resumed=resumed)
        return fit(draft if auto else draft.recipe, tmp_path / "special", resume=bool(resumed))

    decode = replace(TINY.decode, beam=3)
    fit(replace(TINY, decode=decode, data=replace(TINY.data, license="mit")), tmp_path / "general")
    fine_tune(4)
    (tmp_path / "general").rename(tmp_path / "gone")
    bundle = fine_tune(8, resumed=Recipe.read(tmp_path / "special/recipe.toml"))
    assert (bundle.model.config.d_model, bundle.decode, bundle.license) == (TINY.model.d_model, decode, "mit")


def test_a_draft_from_a_model_has_its_sizes(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "general")
    draft = make_draft(TINY, init_from=str(tmp_path / "general"))
    recipe, _ = draft.complete(replace(SMALL, pairs=200, tokens=4_000))
    assert recipe.model.d_model == TINY.model.d_model
    assert recipe.train.steps < 1_000
    with pytest.raises(ConfigError, match="general"):
        fit(
            Recipe.from_tables({**TINY.tables(), "model": {}, "train": {"init_from": str(tmp_path / "general")}}),
            tmp_path / "b",
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [("vocab_size", 400), ("vocabulary", "words"), ("target_vocabulary", "words"), ("joint_vocabulary", False)],
)
def test_a_run_that_starts_from_a_model_has_no_vocabulary_to_describe(
    tmp_path: Path, saved: Path, name: str, value: object
) -> None:
    """That of the model's own run may be described, since the same recipe often serves both."""
    data = replace(TINY.data, vocabulary="bpe")
    recipe = replace(TINY, train=replace(TINY.train, init_from=str(saved)), data=replace(data, **{name: value}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"{name}="):
        fit(recipe, tmp_path / "run")


@pytest.mark.parametrize(
    "tables",
    [
        {"train": {"ema_decay": 0.9}},
        {"train": {"weight_decay": 0.1}},
        {"model": {"d_model": 100}},
        {"model": {"heads": 8}},
    ],
)
def test_a_setting_is_held_against_what_is_chosen_and_not_against_the_papers(
    tables: dict[str, dict[str, object]],
) -> None:
    draft = Draft.from_tables(tables)
    assert draft.preliminary
    recipe, _ = draft.complete(SMALL)
    for section, table in tables.items():
        for key, value in table.items():
            assert getattr(getattr(recipe, section), key) == value


def test_what_cannot_go_with_a_choice_is_refused_by_both_their_names() -> None:
    draft = Draft.from_tables({"model": {"heads": 3}})
    assert draft.preliminary
    with pytest.raises(ConfigError, match=r"d_model=256, heads=3 .*model\.d_model=256"):
        draft.complete(SMALL)


@pytest.mark.parametrize(
    "tables",
    [
        {"train": {"ema_decay": 0.9, "average_checkpoints": 5}},
        {"model": {"d_model": 100, "heads": 3}},
        {"train": {"stesp": 1}},
        {"model": 3},
    ],
)
def test_what_is_set_wrongly_is_refused_before_the_corpus_is_read(tables: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"ema_decay=0\.9, average_checkpoints=5|heads=3|stesp|a table"):
        assert Draft.from_tables(tables).preliminary


def test_a_draft_keeps_what_is_set_of_cleaning() -> None:
    recipe, _ = Draft({"clean": {"max_length_ratio": 9.0}}).complete(SMALL)
    assert recipe.clean.max_length_ratio == 9.0


def test_few_sentences_are_a_warning_but_no_few_strings_nor_pairs_for_a_trained_model() -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioulmnrst", k=6)) for _ in range(2_000)]
    sides = [" ".join(rng.choices(words, k=rng.randint(4, 9))) for _ in range(2_000)]
    strings = [Pair(f"{n}a", f"{n}b") for n in range(999)]
    text = Draft({"data": {"vocabulary": "bpe"}}, statistics=measure_pairs(list(map(Pair, sides[::2], sides[1::2]))))
    assert text.is_exact is False
    assert "3,000 " in text.warning(3_000)
    assert text.warning(30_000) == ""
    assert replace(text, model={"d_model": 64}).warning(3_000) == ""
    assert replace(text, statistics=measure_pairs(strings)).warning(3_000) == ""


def test_the_figures_that_a_rule_names_exist() -> None:
    docs = Path(__file__).parents[2] / "docs/measured"
    for rule in RULES:
        page, _, anchor = rule.measured.partition("#")
        if page:
            headings = re.findall(r"(?m)^#+ (.+)$", (docs / page).read_text(encoding="utf-8"))
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert not anchor or anchor in slugs, rule.measured
