"""The command `adapt`: files of pairs and of suggestions, and what it refuses."""

import json
from pathlib import Path

import pytest

from allyouneed import fit
from allyouneed.apps.serve.suggestions import SuggestionStore
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
    assert f"{scores['after']['corrections']['chrf']:.2f}" in printed
    assert "all were trained on: too few to split" in printed
    again = run_here("adapt", base, store.path, *QUICK, "--output", tmp_path / "better", "--resume")
    assert again.stdout == result.stdout


def test_what_cannot_be_learned_is_refused_in_one_line(base: Path, tmp_path: Path) -> None:
    corrections = tmp_path / "corrections.tsv"
    assert "does not exist" in refusal("adapt", base, corrections)
    corrections.write_text("")
    assert "is empty" in refusal("adapt", base, corrections)
    corrections.write_text("1845-01-05\tJanuary 5\n")
    assert "is no folder" in refusal("adapt", tmp_path / "gone", corrections)
    line = refusal("adapt", base, corrections, "--output", base)
    assert "already contains a run; resume it, name another folder, or delete it" in line
    assert "unknown key" in refusal("adapt", base, corrections, "-o", tmp_path / "new", "train.step=4")
    assert "names two columns" in refusal("adapt", base, corrections, "--columns", "en")
    corrections.write_text("Ж\tЖ\n")
    assert "does not fit the corrections" in refusal("adapt", base, corrections, "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").write_text("\n")
    assert "has no text" in refusal("adapt", base, corrections, "--sources", tmp_path / "empty")
