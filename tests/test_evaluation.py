from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars
import pytest

from allyouneed import Bundle, ConfigError, DataError, Evaluation, OutputError, Recipe, Translator, evaluate, fit
from allyouneed.corpus.normalize import Normalization
from allyouneed.corpus.pair import Pair
from runs import TINY, Notebook

IN_MEMORY = replace(TINY, data=replace(TINY.data, train=(), valid=(), held_out=0.1))
PAIRS = [(f"{number:03}", f"{number:03}"[::-1]) for number in range(300)]


def test_a_model_that_says_the_references_has_every_score_at_100(bundle: Bundle) -> None:
    sources = ["abcdefg", "jihgfed"]
    references = Translator(bundle).translate(sources)
    result = evaluate(bundle, zip(sources, references, strict=True), tokenize="char")
    assert result.scores == pytest.approx({"bleu": 100, "chrf": 100, "exact": 100})
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


def test_nothing_to_evaluate_is_refused(bundle: Bundle) -> None:
    with pytest.raises(DataError, match="nothing to score"):
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


def test_a_run_on_pairs_from_memory_is_resumed_with_the_same_pairs_only(tmp_path: Path) -> None:
    run, longer = tmp_path / "run", replace(IN_MEMORY, train=replace(IN_MEMORY.train, steps=16))
    fit(IN_MEMORY, run, train=iter(PAIRS), valid=PAIRS[:20], evaluate=None)
    fit(longer, run, train=iter(PAIRS), valid=PAIRS[:20], evaluate=None, resume=True)
    for other in ([*PAIRS[:7], ("x", "y"), *PAIRS[8:]], PAIRS[:-1], [*PAIRS, ("x", "y")]):
        with pytest.raises(DataError, match="train differs at pair .* from the pairs that this run started with"):
            fit(longer, run, train=other, valid=PAIRS[:20], evaluate=None, resume=True)
    with pytest.raises(DataError, match="test has pairs, but this run did not start with pairs from memory"):
        fit(longer, run, train=PAIRS, valid=PAIRS[:20], test=PAIRS[:20], evaluate=None, resume=True)
    with pytest.raises(OutputError, match="already contains a run"):
        fit(IN_MEMORY, run, train=PAIRS[:50])
    assert len((run / "pairs/train.jsonl").read_text().splitlines()) == len(PAIRS)


def test_pairs_come_from_one_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both train and data.train='dates:train' name pairs"):
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
    with pytest.raises(ConfigError, match='early_stopping_metric="other" is no score of this run; it has loss, mine'):
        fit(other, tmp_path / "other", evaluate=lambda bundle, pairs: Evaluation({"mine": 1.0}))


def test_an_unknown_metric_is_refused_before_any_work(tmp_path: Path) -> None:
    recipe = replace(TINY, train=replace(TINY.train, patience=5, early_stopping_metric="blue"))
    with pytest.raises(ConfigError, match="must be one of loss, bleu, chrf, exact"):
        fit(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
