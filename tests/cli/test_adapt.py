"""The command `adapt`: files of pairs and of suggestions, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.apps.serve.suggestions import SuggestionStore
from allyouneed.bundle_parts import read_config
from allyouneed.data.readers import read_pairs
from runs import TINY
from shell import refusal, run_here

QUICK = ("train.steps=4", "train.validate_every=2", "train.threads=1", "train.tensorboard=false")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "dates"
    fit(TINY, folder)
    return folder


def test_the_corrections_that_a_server_stored_are_learned(base: Path, tmp_path: Path) -> None:
    store = SuggestionStore(tmp_path / "suggestions.jsonl", max_size=100_000)
    for day in range(10, 13):
        store.add(f"1845-01-{day}", "January", "en", "it")
        store.add(f"1845-01-{day}", f"January {day}, 1845", "en", "it")
    result = run_here("adapt", base, store.path, *QUICK, "--output", tmp_path / "better")
    assert result.returncode == 0, result.stderr.decode()
    learned = read_pairs(str(tmp_path / "better/pairs/corrections.train.jsonl"))
    assert learned == [(f"1845-01-{day}", f"January {day}, 1845") for day in range(10, 13)]
    scores = json.loads((tmp_path / "better/adaptation.json").read_text())
    printed = result.stdout.decode()
    assert f"{scores['before']['known']['chrf']:.2f}" in printed
    assert scores["after"].keys() == {"known"}  # too few corrections to hold some out
    assert re.search(r"\d of 3 corrections", printed)
    again = run_here("adapt", base, store.path, *QUICK, "--output", tmp_path / "better", "--resume")
    assert again.stdout == result.stdout


def test_what_cannot_be_learned_is_refused_in_one_line(base: Path, tmp_path: Path) -> None:
    corrections = tmp_path / "corrections.tsv"
    assert "not exist" in refusal("adapt", base, corrections)
    corrections.write_text("")
    assert "is empty" in refusal("adapt", base, corrections)
    corrections.write_text("1845-01-05\tJanuary 5\n")
    assert f"{tmp_path / 'gone'} " in refusal("adapt", tmp_path / "gone", corrections)
    assert "an adaptation" in refusal("adapt", base, corrections, "--output", base)
    assert "unknown key" in refusal("adapt", base, corrections, "-o", tmp_path / "new", "train.step=4")
    assert "two columns" in refusal("adapt", base, corrections, "--columns", "en")
    corrections.write_text("Ж\tЖ\n")
    assert "corrections" in refusal("adapt", base, corrections, "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").write_text("\n")
    assert "no text" in refusal("adapt", base, corrections, "--sources", tmp_path / "empty")


def test_a_correction_that_says_what_the_model_says_is_left_out(tmp_path: Path) -> None:
    store = SuggestionStore(tmp_path / "suggestions.jsonl", max_size=100_000)
    languages = read_config(DATE_MODEL).languages
    store.add("1845-01-05", "January 5, 1845", *languages)
    assert "suggestions.jsonl" in refusal("adapt", DATE_MODEL, store.path, *QUICK, "--output", tmp_path / "better")
    store.add("1845-01-06", "6 January 1845", *languages)
    result = run_here("adapt", DATE_MODEL, store.path, *QUICK, "--output", tmp_path / "better")
    assert result.returncode == 0, result.stderr.decode()
    assert read_pairs(str(tmp_path / "better/pairs/corrections.train.jsonl")) == [("1845-01-06", "6 January 1845")]
