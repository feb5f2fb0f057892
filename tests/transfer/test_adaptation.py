"""A model adapted to corrections: what it mixes in, what it measures, and how it goes on after a kill."""

import json
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Bundle, ConfigError, DataError, Draft, InputError, OutputError, Recipe, fit
from allyouneed.apps.transfer.adaptation import adapt_bundle
from allyouneed.auto.choice_rules import peak_learning_rate
from allyouneed.data.prepared_files import read_held_out
from allyouneed.data.readers import read_pairs
from allyouneed.evaluation import evaluate_greedily
from allyouneed.machine.files import locked
from runs import TINY, Notebook, StopAt, read_weights

# The known task copies digits; the corrections, marked by a letter, write letters for them.
LETTERS = str.maketrans("0123456789", "cdefghijkl")
KNOWN = [(f"{number:03}a", f"{number:03}") for number in range(0, 1000, 2)]
CORRECTIONS = [(f"{number:03}b", f"{number:03}".translate(LETTERS)) for number in range(1, 1000, 5)]
QUICK: dict[str, Any] = {"train": {"steps": 6, "validate_every": 2, "threads": 1, "tensorboard": False}}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a model that copies three digits."""
    folder = tmp_path_factory.mktemp("base") / "run"
    tables = {
        "data": {"vocabulary": "characters", "alphabet": "0123456789abcdefghijkl", "held_out": 0.1},
        "model": {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0},
        "train": {
            "steps": 200,
            "batch_tokens": 500,
            "validate_every": 200,
            "threads": 1,
            "tensorboard": False,
            "label_smoothing": 0,
        },
    }
    fit(Draft.from_tables(tables), folder, train=KNOWN)
    return folder


@pytest.mark.slow
def test_corrections_are_learned_and_the_rest_is_kept(base: Path, tmp_path: Path) -> None:
    settings = {"train": {"steps": 150, "batch_tokens": 500, "validate_every": 50, "threads": 1, "tensorboard": False}}
    result = adapt_bundle(base, CORRECTIONS, tmp_path / "adapted", settings=settings)
    gains = {name: result.after[name]["chrf"] - result.before[name]["chrf"] for name in ("corrections", "known")}
    assert gains["corrections"] > 10
    assert gains["known"] > -3
    assert result.learned is None
    assert not result.are_outputs


@pytest.fixture(scope="module")
def adapted(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adapted") / "run"
    adapt_bundle(base, CORRECTIONS, folder, settings=QUICK)
    return folder


def test_both_test_sets_are_scored_before_and_after(base: Path, adapted: Path) -> None:
    stored = json.loads((adapted / "adaptation.json").read_text())
    known = read_held_out(base / "data", "test")
    corrections = read_pairs(str(adapted / "pairs/corrections.test.jsonl"))
    for when, folder in (("before", base), ("after", adapted)):
        bundle = Bundle.load(folder)
        for name, pairs in (("known", known), ("corrections", corrections)):
            # No target has the four words that BLEU needs.
            scores = evaluate_greedily(bundle, pairs).scores
            assert stored[when][name] == {metric: scores[metric] for metric in ("chrf", "exact")}
    assert not set(corrections) & set(read_pairs(str(adapted / "pairs/corrections.train.jsonl")))


def test_the_best_model_is_chosen_by_both_validation_sets(adapted: Path) -> None:
    recipe = Recipe.read(adapted / "recipe.toml")
    assert recipe.train.early_stopping_metric == "joint"
    parts = {name: read_pairs(str(adapted / f"pairs/{name}.valid.jsonl")) for name in ("corrections", "known")}
    rows = [json.loads(line) for line in (adapted / "metrics.jsonl").read_text().splitlines()]
    best = max(rows, key=lambda row: row["scores"]["joint"])["scores"]
    for name, score in (("corrections", "new"), ("known", "known")):
        assert best[score] == evaluate_greedily(Bundle.load(adapted), parts[name]).scores["chrf"]


def test_points_that_the_known_pairs_lose_count_beyond_a_tolerance(base: Path, adapted: Path) -> None:
    known = read_pairs(str(adapted / "pairs/known.valid.jsonl"))
    before = evaluate_greedily(Bundle.load(base), known).scores["chrf"]
    for line in (adapted / "metrics.jsonl").read_text().splitlines():
        scores = json.loads(line)["scores"]
        assert scores["joint"] == pytest.approx(scores["new"] - 3 * max(0.0, before - scores["known"] - 0.5))


def test_a_corrected_source_is_not_mixed_in_as_it_was_learned(base: Path, tmp_path: Path) -> None:
    corrections = [(source, target[::-1] + "a") for source, target in KNOWN[:200]]
    adapt_bundle(base, corrections, tmp_path / "run", settings=QUICK)
    corrected = {source for source, _ in corrections}
    for part in ("train", "valid", "test"):
        assert not corrected & {pair.source for pair in read_pairs(str(tmp_path / f"run/pairs/known.{part}.jsonl"))}


def test_few_corrections_are_all_learned_and_repeated(base: Path, tmp_path: Path) -> None:
    result = adapt_bundle(base, CORRECTIONS[:10], tmp_path / "run", mix=0.1, settings=QUICK)
    assert result.learned is not None
    assert result.learned[2] == 10
    assert result.before.keys() == result.after.keys() == {"known"}
    recipe = Recipe.read(tmp_path / "run/recipe.toml")
    corrections, known = recipe.data.corpora()
    counts = [corpus.weight * len(read_pairs(str(corpus.train))) for corpus in (corrections, known)]
    assert counts == pytest.approx([1_000, 100])
    assert known.weight < 1, "epochs have different known pairs"


@pytest.mark.parametrize(("many", "share"), [(161, 0.2), (160, 0.5)])
def test_many_corrections_have_a_higher_learning_rate(
    base: Path, tmp_path: Path, many: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.apps.transfer.adaptation.MANY", many)
    adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK)
    rate = Recipe.read(tmp_path / "run/recipe.toml").train.learning_rate
    assert rate == pytest.approx(share * peak_learning_rate(32, "muon"))


def test_nothing_is_mixed_in_if_the_mix_is_0(base: Path, tmp_path: Path) -> None:
    adapt_bundle(base, CORRECTIONS, tmp_path / "run", mix=0, settings=QUICK)
    _, known = Recipe.read(tmp_path / "run/recipe.toml").data.corpora()
    assert not known.train
    assert known.valid


def test_a_run_that_was_stopped_ends_as_if_it_had_not(base: Path, adapted: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK, callback=StopAt(3))
    result = adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK, resume=True)
    assert read_weights(tmp_path / "run") == read_weights(adapted)
    assert result.after == json.loads((adapted / "adaptation.json").read_text())["after"]


def test_a_run_that_was_killed_while_it_collected_pairs_starts_again(
    base: Path, adapted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("allyouneed.apps.transfer.adaptation.evaluate_greedily", die)
    with pytest.raises(KeyboardInterrupt):
        adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK)
    monkeypatch.undo()
    assert not (tmp_path / "run/pairs/adaptation.json").exists()
    adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK, resume=True)
    assert read_weights(tmp_path / "run") == read_weights(adapted)


def test_other_corrections_do_not_resume_a_run(base: Path, adapted: Path) -> None:
    with pytest.raises(ConfigError, match="corrections, mix"):
        adapt_bundle(base, CORRECTIONS[1:], adapted, mix=2, settings=QUICK, resume=True)


def test_an_output_that_exists_is_refused(base: Path, adapted: Path) -> None:
    with pytest.raises(OutputError, match="already contains"):
        adapt_bundle(base, CORRECTIONS, adapted, settings=QUICK)


def test_a_run_that_is_no_adaptation_is_not_resumed(base: Path) -> None:
    for resume in (True, False):
        with pytest.raises(ConfigError, match="an adaptation") as refused:
            adapt_bundle(base, CORRECTIONS, base, settings=QUICK, resume=resume)
        assert refused.value.options == ("--output", f"{base}-2")


def test_two_at_once_are_refused(base: Path, tmp_path: Path) -> None:
    with (
        locked(tmp_path / "run", what="run"),
        pytest.raises(OutputError, match="another process"),
    ):
        adapt_bundle(base, CORRECTIONS, tmp_path / "run", settings=QUICK)


def test_no_corrections_are_refused(base: Path, tmp_path: Path) -> None:
    for nothing, why in (([], "expected"), ([(" ", "x")], "expected"), ([("1" * 3_000, "c")], "all 1 are longer than")):
        with pytest.raises(DataError, match=why):
            adapt_bundle(base, nothing, tmp_path / "run", settings=QUICK)
    assert not (tmp_path / "run").exists()


def test_corrections_that_repeat_or_contradict_each_other_are_counted(base: Path, tmp_path: Path) -> None:
    few = [("001b", "cde"), ("001b", "cde"), ("001b", "cdf"), ("003b", " "), ("", "cd"), ("005b", "cch")]
    few += [("007b", "c" * 3_000)]
    notebook = Notebook()
    adapt_bundle(base, few, tmp_path / "run", settings=QUICK, callback=notebook)
    assert any(line.startswith("corrections: 4 of 7 ") for line in notebook.lines)
    assert any("1 of 2 corrected texts" in line and "'001b'" in line for line in notebook.lines)
    assert len(read_pairs(str(tmp_path / "run/pairs/corrections.train.jsonl"))) == 3


def test_a_loss_on_what_it_knew_is_a_warning(base: Path, tmp_path: Path) -> None:
    def warnings_with(name: str, learning_rate: float) -> list[str]:
        notebook = Notebook()
        settings = {"train": {**QUICK["train"], "learning_rate": learning_rate}}
        adapt_bundle(base, CORRECTIONS[:10], tmp_path / name, mix=0, settings=settings, callback=notebook)
        return [line for line in notebook.lines if line.startswith("warning")]

    assert any("lost" in line and "--mix keeps more" in line for line in warnings_with("wild", 0.5))
    assert any("gained" in line for line in warnings_with("timid", 1e-9))


def test_a_vocabulary_that_does_not_fit_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'x' .*position 1"):
        adapt_bundle(base, [("x", "1")], tmp_path / "run", settings=QUICK)


def test_unknown_words_are_counted(tmp_path: Path) -> None:
    pairs = [(f"eins zwei drei vier {n}", f"one two three four {n}") for n in range(10)] * 9
    words = {"vocabulary": "words", "vocab_size": 40, "held_out": 0.2}
    fit(Recipe.from_tables(TINY.tables() | {"data": words}), tmp_path / "base", train=pairs, evaluate=None)
    few = [("eins zwei drei vier 1", "one two three four neu"), *pairs[:9]]
    notebook = Notebook()
    adapt_bundle(tmp_path / "base", few, tmp_path / "few", settings=QUICK, callback=notebook, sources=["zwei eins"])
    assert any("%" in line and "unknown" in line for line in notebook.lines)
    with pytest.raises(DataError, match=r"50\.0% .*10%"):
        adapt_bundle(tmp_path / "base", [("neu eins", "neu one")], tmp_path / "many", settings=QUICK)
