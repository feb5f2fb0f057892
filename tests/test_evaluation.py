import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pytest

from allyouneed import (
    AllYouNeedError,
    Bundle,
    ConfigError,
    DataError,
    Draft,
    Evaluation,
    InputError,
    OutputError,
    Recipe,
    TrainingError,
    Translator,
    evaluate,
    fit,
)
from allyouneed.data.pairs import Pair
from allyouneed.evaluation.model_scores import UserMetric, greedy_translator
from allyouneed.text.normalize import Normalization
from runs import TINY, Notebook

IN_MEMORY = replace(TINY, data=replace(TINY.data, train=(), valid=(), held_out=0.1))
PAIRS = [(f"{number:03}", f"{number:03}"[::-1]) for number in range(300)]


def test_validation_searches_as_the_recipe_says_but_greedily(bundle: Bundle) -> None:
    chosen = replace(bundle.decode, beam=6, nbest=2, length_ratio=2.0, retry_repetition=False)
    greedy = replace(chosen, beam=1, nbest=1, batch_size=128)
    assert greedy_translator(replace(bundle, decode=chosen)).decode == greedy
    assert greedy_translator(replace(bundle, decode=replace(chosen, sample=True))).decode == greedy


def test_a_model_that_says_the_references_has_every_score_at_100(bundle: Bundle) -> None:
    sources = ["abcdefg", "jihgfed"]
    references = Translator(bundle).translate(sources)
    result = evaluate(bundle, zip(sources, references, strict=True), tokenize="char")
    assert result.scores == pytest.approx(
        {"bleu": 100, "chrf": 100, "chrf++": 100, "ter": 0, "cer": 0, "exact": 100}, abs=1e-9
    )
    assert result.intervals["exact"] == (100, 100)
    assert "tok:char" in result.signatures["bleu"]
    assert [(sample.source, sample.output) for sample in result.samples] == list(zip(sources, references, strict=True))


def test_one_of_several_references_is_enough(bundle: Bundle) -> None:
    (translation,) = Translator(bundle).translate(["abc"])
    assert evaluate(Translator(bundle), [("abc", ["something else", translation])]).scores["exact"] == 100


def test_references_are_normalized_as_the_model_was_trained(bundle: Bundle) -> None:
    wide = replace(bundle, normalization=Normalization(unicode="NFKC"))
    (translation,) = Translator(wide).translate(["abc"])
    assert (
        evaluate(wide, [("abc", "".join(chr(ord(letter) + 0xFEE0) for letter in translation))]).scores["exact"] == 100
    )


@pytest.mark.parametrize("path", [str, Path])
def test_a_bundle_is_evaluated_by_its_path(bundle: Bundle, tmp_path: Path, path: type) -> None:
    bundle.save(tmp_path)
    pairs = [("abc", "cba")]
    assert evaluate(path(tmp_path), pairs) == evaluate(bundle, pairs)


@pytest.mark.parametrize("path", [str, Path])
def test_the_pairs_may_be_a_file(bundle: Bundle, tmp_path: Path, path: type) -> None:
    pairs = [("cab", "abc"), ("bac", "cab")]
    file = tmp_path / "test.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    assert evaluate(bundle, path(file)) == evaluate(bundle, pairs)


def test_what_is_no_bundle_or_no_pair_is_refused_in_one_line(bundle: Bundle) -> None:
    wrong: Any = 3
    with pytest.raises(ConfigError, match=r'Translator\.load\("runs/mine"\).*3'):
        evaluate(wrong, [("abc", "cba")])
    for pairs, message in (
        ([("abc", "cba"), "ab"], "a pair must be a source and its reference translation, .* got 'ab'"),
        ([("abc", [])], r"or a list of these; got \('abc', \[\]\)"),
        ([("abc", ["cba", None])], "or a list of these; got "),
    ):
        with pytest.raises(InputError, match=message):
            evaluate(bundle, pairs)  # type: ignore[arg-type]
    with pytest.raises(AllYouNeedError, match="nowhere.tsv"):
        evaluate(bundle, "nowhere.tsv")


def test_nothing_to_evaluate_is_refused(bundle: Bundle) -> None:
    with pytest.raises(DataError, match="to score"):
        evaluate(bundle, [])


def test_a_run_from_python_validates_with_bleu_unless_it_is_switched_off(tmp_path: Path) -> None:
    scored, unscored = Notebook(), Notebook()
    fit(TINY, tmp_path / "scored", callback=scored)
    fit(TINY, tmp_path / "unscored", callback=unscored, evaluate=None)
    assert scored.validations[-1].scores.keys() == {"bleu", "chrf", "exact"}
    assert unscored.validations[-1].scores == {}
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("scored", "unscored")]
    assert weights[0] == weights[1]


def test_pairs_from_memory_train_the_model_that_the_same_file_trains(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    from_file = replace(IN_MEMORY, data=replace(IN_MEMORY.data, train=str(tmp_path / "pairs.tsv")))
    fit(from_file, tmp_path / "file", evaluate=None)
    fit(IN_MEMORY, tmp_path / "list", train=PAIRS, evaluate=None)
    fit(IN_MEMORY, tmp_path / "frame", train=polars.DataFrame(PAIRS, schema=["a", "b"], orient="row"), evaluate=None)
    fit(Recipe.read(tmp_path / "list/recipe.toml"), tmp_path / "again", evaluate=None)  # it names the stored pairs
    names = ("file", "list", "frame", "again")
    assert len({(tmp_path / name / "weights.safetensors").read_bytes() for name in names}) == 1


def test_settings_that_are_left_out_are_chosen_for_files_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command does: the draft that is completed names the same files."""
    trained: list[Recipe | Draft] = []

    def complete(recipe: Recipe | Draft, *_: object, **__: object) -> tuple[None, list[str]]:
        trained.append(recipe)
        return None, []

    monkeypatch.setattr("allyouneed.apps.reports.fitting.complete", complete)
    monkeypatch.setattr("allyouneed.apps.reports.fitting.run_training", lambda *_, **__: None)
    (tmp_path / "my.toml").write_text("[train]\nsteps = 7\n")
    accepted: list[Any] = ["p.tsv", Path("p.tsv"), ["p.en", Path("p.de")], ("p.en", "p.de"), {"train": {"steps": 7}}]
    for what in [*accepted, tmp_path / "my.toml", TINY]:
        fit(what, tmp_path / "run")
    one, two = {"data": {"train": "p.tsv"}}, {"data": {"train": ["p.en", "p.de"]}}
    assert [draft.tables for draft in trained if isinstance(draft, Draft)] == [one, one, two, two, accepted[-1]]
    assert trained[5:] == [Recipe.read(tmp_path / "my.toml"), TINY]


def test_a_file_of_pairs_and_tables_train_a_model(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    tables = {name: IN_MEMORY.tables()[name] for name in ("train", "model")}
    fit({**tables, "data": {"train": str(tmp_path / "pairs.tsv")}}, tmp_path / "run", evaluate=None)
    fit(tables, tmp_path / "memory", train=PAIRS, evaluate=None)
    for run in ("run", "memory"):
        assert Recipe.read(tmp_path / run / "recipe.toml").data.vocabulary == "characters"  # chosen for digits


@pytest.mark.parametrize("what", [PAIRS, [], 3, None, b"pairs.tsv", [Path("a"), 3]])
def test_what_is_no_recipe_and_no_file_is_refused_in_one_line(tmp_path: Path, what: Any) -> None:
    with pytest.raises(ConfigError, match=r"train=pairs\)$"):
        fit(what, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_on_pairs_from_memory_is_resumed_with_the_same_pairs_only(tmp_path: Path) -> None:
    run, longer = tmp_path / "run", replace(IN_MEMORY, train=replace(IN_MEMORY.train, steps=16))
    fit(IN_MEMORY, run, train=iter(PAIRS), valid=PAIRS[:20], evaluate=None)
    fit(longer, run, train=iter(PAIRS), valid=PAIRS[:20], evaluate=None, resume=True)
    for other in ([*PAIRS[:7], ("x", "y"), *PAIRS[8:]], PAIRS[:-1], [*PAIRS, ("x", "y")]):
        with pytest.raises(DataError, match="train differs"):
            fit(longer, run, train=other, valid=PAIRS[:20], evaluate=None, resume=True)
    with pytest.raises(DataError, match="test has"):
        fit(longer, run, train=PAIRS, valid=PAIRS[:20], test=PAIRS[:20], evaluate=None, resume=True)
    with pytest.raises(OutputError, match="already contains"):
        fit(IN_MEMORY, run, train=PAIRS[:50])
    assert len((run / "pairs/train.jsonl").read_text().splitlines()) == len(PAIRS)


def test_pairs_come_from_one_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.train='dates:train'"):
        fit(TINY, tmp_path / "run", train=PAIRS)
    assert not (tmp_path / "run").exists()


def test_a_score_of_an_evaluator_keeps_the_best_model(tmp_path: Path) -> None:
    scores = iter([1.0, 3.0, 2.0])
    recipe = replace(TINY, train=replace(TINY.train, patience=5, early_stopping_metric="mine", average_checkpoints=1))
    notebook = Notebook()

    def count(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
        return Evaluation({"mine": next(scores)})

    fit(recipe, tmp_path / "run", evaluate=count, callback=notebook)
    assert [validation.scores["mine"] for validation in notebook.validations] == [1.0, 3.0, 2.0]
    other = replace(recipe, train=replace(recipe.train, early_stopping_metric="other"))
    with pytest.raises(ConfigError, match='early_stopping_metric="other".*mine'):
        fit(other, tmp_path / "other", evaluate=lambda bundle, pairs: Evaluation({"mine": 1.0}))


def test_an_unknown_metric_is_refused_before_any_work(tmp_path: Path) -> None:
    recipe = replace(TINY, train=replace(TINY.train, patience=5, early_stopping_metric="blue"))
    with pytest.raises(ConfigError, match='"module:function"'):
        fit(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def count_vowels(translations: Sequence[str], references: Sequence[str]) -> float:
    assert len(translations) == len(references) == 20
    return float(sum(text.count("a") for text in translations))


def test_a_metric_of_the_user_is_recorded_and_stops_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.run.validator.MIN_UPDATES", 0)  # models are compared from then on
    values = iter([5.0, 1.0, 1.0, 1.0])
    settings = replace(TINY.train, patience=1, early_stopping_metric="mine", average_checkpoints=1, warmup=1, steps=16)
    notebook = Notebook()
    metrics = {"mine": lambda translations, references: next(values), "vowels": count_vowels}
    fit(replace(TINY, train=settings), tmp_path / "run", callback=notebook, metrics=metrics)
    assert [validation.scores["mine"] for validation in notebook.validations] == [5.0, 1.0]
    assert notebook.validations[0].scores.keys() == {"bleu", "chrf", "exact", "mine", "vowels"}


def test_a_recipe_names_a_metric_in_a_file_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted_metric.py").write_text("def length(translations, references):\n    return 7\n")
    monkeypatch.chdir(tmp_path)
    settings = replace(TINY.train, early_stopping_metric="planted_metric:length", patience=9)
    notebook = Notebook()
    fit(replace(TINY, train=settings), tmp_path / "run", callback=notebook)
    assert notebook.validations[-1].scores["planted_metric:length"] == 7
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda translations, references: 1 / 0, '"mine" .*ZeroDivisionError'),
        (lambda translations, references: float("nan"), 'metric "mine"'),
        (lambda translations, references: "high", '"mine" .*ValueError'),
    ],
)
def test_a_metric_that_gives_no_number_is_refused(tmp_path: Path, metric: UserMetric, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        fit(TINY, tmp_path / "run", metrics={"mine": metric})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_to_be:f", '"nowhere_to_be:f" .*ModuleNotFoundError'),
        ("math:fun", '"math:fun" .*AttributeError'),
        ("math:pi", '"math:pi" .*function'),
        ("blue", '"module:function"; got "blue"'),
    ],
)
def test_a_metric_that_is_not_there_is_refused_before_any_work(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fit(replace(TINY, train=replace(TINY.train, early_stopping_metric=name)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_metric_with_the_name_of_another_or_without_translations_is_refused(tmp_path: Path) -> None:
    for name in ("chrf", "learning_rate", "perplexity", "step"):  # the last ones are curves beside the metrics
        with pytest.raises(ConfigError, match=f'"{name}"'):
            fit(TINY, tmp_path / "run", metrics={name: count_vowels})
    with pytest.raises(ConfigError, match="no name"):
        fit(TINY, tmp_path / "run", metrics={"": count_vowels})
    with pytest.raises(ConfigError, match="leave out evaluate=None"):
        fit(TINY, tmp_path / "run", metrics={"mine": count_vowels}, evaluate=None)
    with pytest.raises(ConfigError, match="as samples"):
        fit(TINY, tmp_path / "run", metrics={"mine": count_vowels}, evaluate=lambda bundle, pairs: Evaluation({}))
