from pathlib import Path

import pytest

from allyouneed.apps.serve.suggestions import SuggestionStore
from allyouneed.data.readers import read_pairs
from shell import refusal, run_here


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = SuggestionStore(tmp_path / "suggestions.jsonl", max_size=10_000)
    store.add("one\ttwo\nthree", "uno due tre", "en", "it")
    store.add("four", "for", "en", "it")
    store.add("uno", "one", "it", "en")
    store.add("four", "quattro", "en", "it")
    return store.path


def test_the_latest_suggestions_come_out_as_pairs(path: Path) -> None:
    output = path.with_name("pairs.tsv")
    result = run_here("suggestions", "export", path, "--output", output, "--source", "en")
    assert b"pairs.tsv has 2 pairs" in result.stderr.replace(b"\n", b"")
    assert read_pairs(str(output)) == [("one two three", "uno due tre"), ("four", "quattro")]


def test_what_cannot_be_is_refused_in_one_line(path: Path) -> None:
    output = path.with_name("pairs.tsv")
    assert "choose one pair with --source and --target" in refusal("suggestions", "export", path, "-o", output)
    assert "no suggestions for these languages" in refusal(
        "suggestions", "export", path, "-o", output, "--source", "de"
    )
    assert "there is no file of suggestions" in refusal("suggestions", "export", output, "-o", path.with_name("x.tsv"))
    output.write_text("a\tb\n")
    assert "exists already" in refusal("suggestions", "export", path, "-o", output, "--source", "en")
    assert "is no file of suggestions" in refusal("suggestions", "export", output, "-o", path.with_name("x.tsv"))
