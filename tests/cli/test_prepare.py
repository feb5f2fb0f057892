"""`allyouneed prepare`: the pairs that `train` finds."""

import json
import re
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.apps.cli.recipe_argument import default_output, recipe_from_arguments
from allyouneed.auto import complete, preliminary_recipe
from allyouneed.errors import ConfigError
from allyouneed.run import Hooks
from runs import Notebook
from shell import refusal, run_here

RECIPE = """
[data]
train = "pairs.tsv"
held_out = 0.1
vocab_size = 300
[model]
d_model = 8
d_ff = 8
heads = 2
encoder_layers = 1
decoder_layers = 1
max_length = 64
[train]
steps = 1
batch_tokens = 200
threads = 1
average_checkpoints = 1
tensorboard = false
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fill the current folder with a recipe and 600 pairs, one of them without a target, one twice."""
    lines = [f"a {i} dog runs\tein {i} Hund rennt\n" for i in range(599)]
    (tmp_path / "pairs.tsv").write_text("".join([*lines, "empty\t\n", lines[0]]))
    (tmp_path / "mine.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [["--output", "run"], ["data.cache_dir=store"]])
def test_train_finds_what_was_prepared(folder: Path, words: list[str]) -> None:
    result = run_here("prepare", "mine.toml", *words)
    assert result.returncode == 0, result.stderr
    summary = result.stdout.decode().splitlines()
    assert summary[0].startswith("train: 601 read, ")
    assert summary[-2] == "vocabulary: 287 tokens"
    assert any(re.match("  1 dropped: .*empty", line) for line in summary)
    assert "  1 dropped: exact duplicates" in summary
    notebook = Notebook()
    fit(recipe_from_arguments("mine.toml", [word for word in words if "=" in word]), folder / "run", callback=notebook)
    assert notebook.prepared == []


@pytest.mark.slow
def test_the_current_folder_can_be_that_of_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "run").mkdir()
    monkeypatch.chdir(folder / "run")
    assert run_here("train", "../mine.toml", "-o", ".", "data.train=../pairs.tsv").returncode == 0
    assert run_here("report", ".").returncode == 0
    assert run_here("train", "../mine.toml", "-o", ".", "data.train=../pairs.tsv", "--resume").returncode == 0
    line = refusal("train", "../mine.toml", "-o", ".", "data.train=../pairs.tsv", "--overwrite")
    assert re.match(rf"allyouneed: {re.escape(str(Path.cwd()))} .*--overwrite", line)
    assert Path("recipe.toml").is_file()


def test_a_run_on_a_hidden_file_has_a_folder_of_its_own() -> None:
    assert default_output("data/.pairs.tsv.gz") == Path("runs/pairs")
    assert default_output("pairs.en.tsv") == Path("runs/pairs")
    assert default_output("hf://datasets/me/books@main/en-it/*.parquet") == Path("runs/books")
    with pytest.raises(ConfigError, match="--output"):
        default_output("hf://books/*.parquet")


def test_the_vocabulary_is_the_one_that_train_chooses_for_a_file_of_pairs(folder: Path) -> None:
    assert run_here("prepare", "pairs.tsv", "data.held_out=0.1").returncode == 0
    notebook = Notebook()
    small = ["model.d_model=8", "model.heads=2", "train.threads=1", "train.batch_tokens=200", "train.workers=1"]
    small += ["data.held_out=0.1", "train.early_stopping_metric=loss"]
    draft = recipe_from_arguments("pairs.tsv", small)
    complete(draft, folder / "runs/pairs", Hooks(callback=notebook))
    assert notebook.prepared == []


def test_the_summary_as_json_and_a_second_call_that_finds_the_pairs(folder: Path) -> None:
    first = run_here("prepare", "mine.toml", "-o", "run", "--json")
    written = {path: path.stat().st_mtime_ns for path in (folder / "run/data").iterdir()}
    again = run_here("prepare", "mine.toml", "-o", "run")
    assert {path: path.stat().st_mtime_ns for path in (folder / "run/data").iterdir()} == written
    assert b"were there before" in again.stderr
    summary = json.loads(first.stdout)
    assert summary["folder"] == "run/data"
    assert summary["pairs"]["train"] == summary["report"]["train"]["used"]
    assert sum(summary["pairs"].values()) == 599
    assert summary["report"]["train"]["dropped"]["empty"] == {"count": 1, "examples": ["empty → "]}
    assert summary["vocabulary"] == [287]
    assert summary["tokens"]["source"] * 2 == (folder / "run/data/train.source.ids").stat().st_size


def test_what_makes_no_sense_is_refused(folder: Path) -> None:
    assert "--output" in refusal("prepare", "mine.toml", "-o", "run", "data.cache_dir=store")
    assert "not exist" in refusal("prepare", "mine.toml", "data.train=none.tsv")
    (folder / "run").mkdir()
    (folder / "run/mine.txt").touch()
    assert "already exists" in refusal("prepare", "mine.toml", "-o", "run")
    assert not (folder / "runs").exists()


def test_columns_are_taken_by_name_and_a_refusal_prints_the_command_that_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},,a {i} dog,ein {i} Hund,x\n" for i in range(200)]
    Path("my export.csv").write_text("".join(["Nr,Datum,Text 1,Text 2,Status\n", *lines]))
    line = refusal("prepare", "my export.csv", "-o", "run", "data.columns=Text 1,Text")
    assert re.search('"Text"; .* Nr, Datum, Text 1, Text 2, Status', line)
    assert line.endswith("allyouneed prepare 'my export.csv' -o run --columns 'Text 1,Text 2'")
    result = run_here("prepare", "my export.csv", "-o", "run", "--columns", "Text 1,Text 2")
    first = result.stdout.decode().splitlines()[0]
    assert re.fullmatch('my export.csv: "Text 1" .*"Text 2" .*: Nr, Datum, Status', first)


@pytest.mark.parametrize("columns", ["data.columns=[en,it]", "data.columns=en,it", 'data.columns=["en","it"]'])
def test_a_list_is_taken_without_its_quotation_marks_too(folder: Path, columns: str) -> None:
    recipe = recipe_from_arguments("pairs.tsv", [columns, "data.tokenizer=[a, 'b']"])
    assert preliminary_recipe(recipe).data.columns == ("en", "it")
    assert preliminary_recipe(recipe).data.tokenizer == ("a", "b")
    assert recipe_from_arguments("mine.toml", ["data.columns=[1,2]"]).data.columns == ("1", "2")  # type: ignore[union-attr]
