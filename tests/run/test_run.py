"""Whole runs, small ones."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.optim import Optimizer

from allyouneed import Bundle, DataError, OutputError, Recipe, Translator, fit
from allyouneed.config import TrainConfig
from allyouneed.data.pairs import Pair
from allyouneed.evaluation.held_out import held_out_pairs
from allyouneed.machine.interpreter import versions
from allyouneed.nn import Transformer
from allyouneed.run import Evaluation, Sample
from allyouneed.run.log import read_jsonl_lines
from allyouneed.run.run import Due, Run
from allyouneed.train import Update, make_optimizer
from messages import numbers_in
from runs import TINY, Notebook, read_weights


def lucky(_: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    return Evaluation({"luck": 7.0}, [Sample(*pair, "?", 7.0) for pair in pairs])


def test_a_run_leaves_a_bundle_and_a_trail(tmp_path: Path) -> None:
    watch = Notebook()
    result = fit(TINY, tmp_path / "run", callback=watch, evaluate=lucky)
    loaded = Bundle.load(tmp_path / "run")
    for ours, reference in zip(result.model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(ours, reference)
    lines = [line for line in watch.lines if not line.startswith("loss: ")]
    assert lines[0].startswith("data: ")
    assert numbers_in(lines[0]) == [200, 20, 43]
    assert lines[1:] == [
        "pair: 1482-02-25 → February 25, 1482",
        "pair: 1226-06-07 → June 7, 1226",
        "tokens: source: 1428-08-11 → 1 · 4 · 2 · 8 · - · 0 · 8 · - · 1 · 1",
        "tokens: target: August 11, 1428 → A · u · g · u · s · t · ␣ · 1 · 1 · , · ␣ · 1 · 4 · 2 · 8",
        "model: 1+1 layers, d_model 8, d_ff 8, 2 heads: 1,576 parameters, products in float32",
        "exports: ctranslate2, onnx, huggingface, html",
        f"program: {versions()}",
    ]
    assert [validation.step for validation in watch.validations] == [4, 8, 12, 12]
    assert [json.loads(line)["step"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()] == [
        4,
        8,
        12,
        12,
    ]
    assert sorted(path.stem for path in (tmp_path / "run/snapshots").iterdir()) == ["00000008", "00000012"]
    assert Recipe.read(tmp_path / "run/recipe.toml") == TINY
    assert f"Trained with {versions()}." in loaded.card
    assert "Trained on 200 pairs for 12 updates." in loaded.card
    assert "Validation luck: 7.00." in loaded.card
    assert not result.model.training


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path: Path) -> None:
    other = replace(TINY, train=replace(TINY.train, seed=2))
    for name, recipe in (("a", TINY), ("b", TINY), ("c", other)):
        fit(recipe, tmp_path / name, callback=Notebook())
    assert read_weights(tmp_path / "a") == read_weights(tmp_path / "b")
    assert read_weights(tmp_path / "a") != read_weights(tmp_path / "c")


def test_validating_changes_nothing(tmp_path: Path) -> None:
    """Neither the data's order nor dropout's draws depend on how often one looks."""
    recipe = replace(TINY, model=replace(TINY.model, dropout=0.2), train=replace(TINY.train, average_checkpoints=1))
    fit(recipe, tmp_path / "often", callback=Notebook())
    fit(replace(recipe, train=replace(recipe.train, validate_every=12)), tmp_path / "once", callback=Notebook())
    assert read_weights(tmp_path / "often") == read_weights(tmp_path / "once")


def test_an_earlier_run_is_not_replaced(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "run", callback=Notebook())
    before = read_weights(tmp_path / "run")
    with pytest.raises(OutputError, match="already contains"):
        fit(TINY, tmp_path / "run", callback=Notebook())
    assert read_weights(tmp_path / "run") == before


def recipe_of_files(folder: Path, sources: Iterable[str], targets: Iterable[str], **data: object) -> Recipe:
    (folder / "source").write_text("".join(f"{line}\n" for line in sources))
    (folder / "target").write_text("".join(f"{line}\n" for line in targets))
    tables = TINY.tables()
    where = {"train": ["source", "target"], "data_dir": str(folder), "held_out": 0}
    tables["data"] = where | {"vocabulary": "characters"} | data
    return Recipe.from_tables(tables)


def test_it_learns_to_copy_from_files_of_text(tmp_path: Path) -> None:
    words = [a + b + c for a in "abcde" for b in "abcde" for c in "abcde"]
    recipe = recipe_of_files(tmp_path, words, words, vocabulary="bpe", vocab_size=262)
    recipe = replace(
        recipe,
        model=replace(recipe.model, d_model=32, d_ff=64, dropout=0.0),
        train=replace(
            recipe.train,
            steps=300,
            warmup=50,
            validate_every=300,
            learning_rate=0.0125,
            label_smoothing=0.0,
            cooldown=150,
        ),
    )
    translator = Translator(fit(recipe, tmp_path / "run", callback=Notebook()))
    assert translator.translate(words[:40]) == words[:40]


def test_the_bundle_keeps_the_form_that_cleaning_gave_the_text(tmp_path: Path) -> None:
    recipe = recipe_of_files(tmp_path, ["ab", "ﬁ"], ["ba", "if"])
    recipe = replace(recipe, clean=replace(recipe.clean, unicode="NFKC"))
    assert fit(recipe, tmp_path / "run", callback=Notebook()).normalization.unicode == "NFKC"
    assert "".join(Translator.load(tmp_path / "run", device="cpu").stream("ﬁﬁ")) is not None  # read as "fifi"


def test_pairs_that_cannot_be_used_are_counted_or_refused(tmp_path: Path) -> None:
    watch = Notebook()
    fit(recipe_of_files(tmp_path, ["a", "", "b" * 40], ["a", "b", "a"]), tmp_path / "run", callback=watch)
    assert [(done, total) for _, done, total in watch.prepared] == [(2, None), (0, None), (1, 2)]
    assert numbers_in(watch.lines[0]) == [1, 6]
    assert re.match("data: 2 .*data.train: 1 .*empty .*1 .*tokens .*data-report.json", watch.lines[1])
    report = json.loads((tmp_path / "run/data-report.json").read_text())
    assert {rule: row["count"] for rule, row in report["train"]["dropped"].items() if row["count"]} == {
        "empty": 1, "max_length": 1,
    }  # fmt: skip
    with pytest.raises(DataError, match="data.train .*1 read, 0 used; 1 "):
        fit(recipe_of_files(tmp_path, [""], ["a"]), tmp_path / "other", callback=watch)
    with pytest.raises(DataError, match="data.train: 'x' .*position 1 "):
        fit(recipe_of_files(tmp_path, "ax", "aa", alphabet="a"), tmp_path / "other", callback=watch)
    assert not (tmp_path / "other").exists()


def test_texts_may_hold_ends_of_lines_that_are_none(tmp_path: Path) -> None:
    words = [f"a\u2028{letter}\u2029b\x85c" for letter in "abcdefghij"]
    recipe = recipe_of_files(tmp_path, words, words, valid=["source", "target"])
    recipe = replace(recipe, clean=replace(recipe.clean, strip_control=False, overlap="none"))
    fit(recipe, tmp_path / "run", evaluate=lucky)
    samples = read_jsonl_lines(tmp_path / "run/samples.jsonl")
    assert len(samples) == 4
    assert samples[0]["samples"][0]["source"] in words
    assert fit(recipe, tmp_path / "run", evaluate=lucky, resume=True)


def test_weights_that_are_not_finite_are_not_saved_between_two_validations_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a time budget, which validates more rarely than it saves."""
    parameters: list[torch.nn.Parameter] = []

    def remembered(model: Transformer, config: TrainConfig) -> Optimizer:
        parameters[:] = model.parameters()
        return make_optimizer(model, config)

    class Spoiler(Notebook):
        def on_update(self, update: Update, steps: int) -> None:
            if update.step == 6 and not any(line.startswith("rollback") for line in self.lines):
                parameters[0].data.fill_(float("inf"))

    def due(run: Run, signal: int) -> Due:
        step, is_last = run.state.step, run.state.step == run.state.last_step(run.settings)
        return Due(step % 4 == 0 or is_last, step % 2 == 0, signal, is_last)

    monkeypatch.setattr(Run, "_due", due)
    notebook = Spoiler()
    fit(TINY, tmp_path / "run", evaluate=None, callback=notebook, optimizer=remembered)
    (line,) = [line for line in notebook.lines if line.startswith("rollback")]
    assert numbers_in(line)[:2] == [6, 4]


def test_the_test_pairs_in_a_cache_are_those_of_the_run_when_its_sources_have_changed(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{n}\t{n + 1}\n" for n in range(400)))
    data = {"train": str(pairs), "cache_dir": str(tmp_path / "cache"), "vocabulary": "characters", "held_out": 0.1}
    fit(Recipe.from_tables(TINY.tables() | {"data": data}), tmp_path / "run", evaluate=None)
    before = held_out_pairs(tmp_path / "run")
    pairs.write_text(pairs.read_text() + "400\t401\n")
    assert held_out_pairs(tmp_path / "run") == before
