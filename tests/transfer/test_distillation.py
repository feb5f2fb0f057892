"""A teacher's translations in the place of those of a recipe's pairs, made once, whatever kills the process."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allyouneed import (
    ConfigError,
    DataError,
    Draft,
    Interrupted,
    OutputError,
    Recipe,
    Translation,
    Translator,
    fit,
)
from allyouneed.apps.transfer import distillation
from allyouneed.apps.transfer.distillation import with_teacher
from allyouneed.data.prepare import prepare
from allyouneed.data.readers import read_pairs
from runs import TINY, Notebook
from shell import refusal, run_here

PAIRS = [(f"1845-01-{day:02}", f"{month} {day}") for day in range(1, 29) for month in ("January", "Januar")]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teacher") / "run"
    fit(TINY, folder)
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Make a recipe with two corpora, the second of them with a weight."""
    for name, pairs in (("first", PAIRS[:40]), ("second", PAIRS[40:])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    corpora = [{"train": str(tmp_path / "first.tsv")}, {"train": str(tmp_path / "second.tsv"), "weight": 2.0}]
    data = {"corpus": corpora, "vocab_size": 300, "held_out": 0.2}
    return Recipe.from_tables(TINY.tables() | {"data": data})


def test_a_student_learns_what_the_teacher_says(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    taught = with_teacher(recipe, [teacher], tmp_path / "run")
    assert isinstance(taught, Recipe)
    translate = Translator.load(teacher)
    original = prepare(recipe.data, recipe.clean, tmp_path / "data", max_length=32)
    corpora = taught.data.corpora()
    assert [corpus.weight for corpus in corpora] == [1, 2]
    learned = [pair for corpus in corpora for pair in read_pairs(str(corpus.train))]
    outputs = translate.translate([pair.source for pair in learned])
    assert [pair.target for pair in learned] == [output.strip() for output in outputs]  # as pairs are read
    held_out = {pair.source for pair in original.valid_pairs + original.test_pairs}
    assert not held_out & {pair.source for pair in learned}
    assert read_pairs(str(corpora[0].valid)) == original.valid_pairs
    assert read_pairs(str(corpora[0].test)) == original.test_pairs


def test_a_draft_stays_a_draft(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    taught = with_teacher(Draft.from_tables({"data": recipe.tables()["data"]}), [teacher], tmp_path / "run")
    assert isinstance(taught, Draft)
    assert len(taught.preliminary.data.corpora()) == 2


def test_a_draft_holds_out_and_keeps_copies_as_without_a_teacher(teacher: Path, tmp_path: Path) -> None:
    """Of 60 pairs a quarter is held out, where the default share would be refused."""
    texts = [f"{year} May" for year in range(1800, 1860)]
    pairs = [(text if number % 3 else text.replace("May", "Mya"), text) for number, text in enumerate(texts)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    draft = Draft.from_tables({"data": {"train": str(tmp_path / "pairs.tsv")}})
    taught = with_teacher(draft, [teacher], tmp_path / "run")
    assert isinstance(taught, Draft)
    chosen = {name: value for choice in taught.chosen for name, value in choice.settings.items()}
    assert chosen == {"clean.drop_copies": 0, "clean.max_length_ratio": 0, "clean.overlap": "source"}  # no "held_out"
    assert len(read_pairs(str(taught.preliminary.data.corpora()[0].valid))) > 8


@pytest.mark.parametrize("is_draft", [False, True])
def test_the_student_keeps_the_languages_and_the_names_of_its_data(
    recipe: Recipe, teacher: Path, tmp_path: Path, is_draft: bool
) -> None:
    files = tmp_path / "train.en", tmp_path / "train.it"
    for file, side in zip(files, zip(*PAIRS, strict=True), strict=True):
        file.write_text("".join(f"{text}\n" for text in side))
    data = recipe.tables()["data"] | {"train": ["train.en", "train.it"], "data_dir": str(tmp_path), "corpus": []}
    tables = recipe.tables() | {"data": data}
    student = Draft.from_tables(tables) if is_draft else Recipe.from_tables(tables)
    taught = with_teacher(student, [teacher], tmp_path / "run")
    assert fit(taught, tmp_path / "run").languages == ("en", "it")
    card = (tmp_path / "run/README.md").read_text()
    assert f"Training data: train.en and train.it translated by {teacher.name}." in card


def test_merges_in_the_folder_of_the_data_are_found(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\nJ a\n")
    data = replace(recipe.data, vocabulary="codes", vocab_size=0, bpe_codes="codes", data_dir=str(tmp_path))
    taught = with_teacher(replace(recipe, data=data), [teacher], tmp_path / "run")
    assert isinstance(taught, Recipe)
    assert prepare(taught.data, taught.clean, tmp_path / "data", max_length=64).train


def test_the_held_out_pairs_of_a_task_stay_its_own(teacher: Path, tmp_path: Path) -> None:
    task = replace(TINY, data=replace(TINY.data, test="dates:test"))
    taught = with_teacher(task, [teacher], tmp_path / "run")
    assert isinstance(taught, Recipe)
    assert taught.data.test == "dates:test"
    assert len(read_pairs(str(taught.data.corpora()[1].valid))) == TINY.data.max_valid_samples


class KilledError(Exception):
    pass


@pytest.mark.parametrize("resume", [True, False])  # before the student starts, there is no run to resume
def test_what_was_translated_is_not_translated_again(
    recipe: Recipe, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    monkeypatch.setattr(distillation, "TRANSLATED_AT_ONCE", 5)
    straight = with_teacher(recipe, [teacher], tmp_path / "straight")
    calls: list[list[str]] = []
    translations, most = Translator.translations, 3

    def count(self: Translator, texts: list[str], **options: Any) -> Any:
        if len(calls) == most:
            raise KilledError
        calls.append(texts)
        return translations(self, texts, **options)

    monkeypatch.setattr(Translator, "translations", count)
    with pytest.raises(KilledError):
        with_teacher(recipe, [teacher], tmp_path / "run")
    most = 1_000
    again = with_teacher(recipe, [teacher], tmp_path / "run", resume=resume)
    assert len(calls) == len({tuple(texts) for texts in calls})
    assert isinstance(straight, Recipe)
    assert isinstance(again, Recipe)
    for one, other in zip(straight.data.corpora(), again.data.corpora(), strict=True):
        assert Path(str(one.train)).read_bytes() == Path(str(other.train)).read_bytes()
    assert not list((tmp_path / "run").rglob("distilled.*.*.jsonl"))


def test_an_interrupt_ends_after_a_chunk(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    class Stop(Notebook):
        def on_prepare(self, what: str, done: int, total: int | None) -> None:
            if what.startswith("translating"):
                import os
                import signal

                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="the teacher"):
        with_teacher(recipe, [teacher], tmp_path / "run", callback=Stop())
    with_teacher(recipe, [teacher], tmp_path / "run", resume=True)


def test_another_teacher_and_other_pairs_do_not_resume(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    with_teacher(recipe, [teacher], tmp_path / "run")
    with pytest.raises(DataError, match="teacher was"):
        with_teacher(recipe, [teacher, teacher], tmp_path / "run", resume=True)
    (tmp_path / "first.tsv").write_text("1845-01-05\tJanuary 5\n")
    with pytest.raises(DataError, match=r"data\.train"):
        with_teacher(recipe, [teacher], tmp_path / "run", resume=True)


def test_a_folder_with_a_run_is_refused(recipe: Recipe, teacher: Path) -> None:
    with pytest.raises(OutputError, match="already contains"):
        with_teacher(recipe, [teacher], teacher)
    with pytest.raises(ConfigError, match="a teacher"):
        with_teacher(recipe, [teacher], teacher, resume=True)


def test_a_source_that_the_teacher_refuses_is_left_out(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    with (tmp_path / "first.tsv").open("a") as file:
        file.write("Ж\tЖ\n")
    notebook = Notebook()
    taught = with_teacher(replace(recipe, data=replace(recipe.data, held_out=0.0)), [teacher], tmp_path / "run",
                          callback=notebook)  # fmt: skip
    assert isinstance(taught, Recipe)
    sources = {pair.source for corpus in taught.data.corpora() for pair in read_pairs(str(corpus.train))}
    assert sources
    assert "Ж" not in sources
    assert any("of 41 training pairs" in line for line in notebook.lines)


def test_a_teacher_without_any_translation_is_refused(
    recipe: Recipe, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "translations", lambda self, texts, **_: [Translation(text, "") for text in texts])
    for resume in (False, True):
        with pytest.raises(DataError, match=r"\d+ training sources"):
            with_teacher(recipe, [teacher], tmp_path / "run", resume=resume)


def test_a_corpus_without_any_translation_is_left_out(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    (tmp_path / "first.tsv").write_text("Ж\tЖ\n" * 5)
    taught = with_teacher(replace(recipe, data=replace(recipe.data, held_out=0.0)), [teacher], tmp_path / "run")
    assert isinstance(taught, Recipe)
    assert [corpus.weight for corpus in taught.data.corpora()] == [2]


@pytest.mark.slow
def test_the_command_trains_a_student_and_resumes_it(recipe: Recipe, teacher: Path, tmp_path: Path) -> None:
    words = ["train", tmp_path / "first.tsv", "--teacher", teacher, "--output", tmp_path / "run"]
    words += [f"model.{key}=8" for key in ("d_model", "d_ff")] + ["model.heads=2", "data.vocab_size=300"]
    words += ["data.held_out=0.25", "train.steps=4", "train.threads=1", "train.tensorboard=false"]
    result = run_here(*words)
    assert result.returncode == 0, result.stderr.decode()
    rows = [json.loads(line) for line in (tmp_path / "run/pairs/distilled.0.jsonl").read_text().splitlines()]
    assert [row["target"] for row in rows] == Translator.load(teacher).translate([row["source"] for row in rows])
    assert "after update 4" in run_here(*words, "--resume").stderr.decode()
    assert "not --overwrite" in refusal(*words, "--overwrite")
