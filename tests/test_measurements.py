"""What the docs say was measured is what the records hold."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from docs_programs import DOCS, pages_of_the_docs, program


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """Import docs/make/pages.py, which writes the tables."""
    return program("pages")


def test_every_table_is_as_the_records_have_it(pages: ModuleType) -> None:
    named = set()
    for path in pages_of_the_docs():
        page = path.read_text(encoding="utf-8")
        assert pages.filled(page) == page, f"{path} is out of date: python docs/make/pages.py"
        named |= set(re.findall(r"<!-- table: (.+?) -->", page))
    assert named == set(pages.TABLES)


def test_a_changed_table_is_written_anew(pages: ModuleType) -> None:
    page = "before\n<!-- table: tasks -->\nold\n<!-- end -->\nafter\n"
    assert "old" not in pages.filled(page)
    assert pages.filled(pages.filled(page)) == pages.filled(page)


@pytest.mark.slow
def test_drawing_the_pictures_again_changes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = program("pictures")
    monkeypatch.setattr(pictures, "PICTURES", tmp_path)
    for name in pictures.OF_A_MODEL:  # left alone, though no two models are alike to the last digit
        (tmp_path / f"{name}.svg").write_text("<svg/>")

    def drawn() -> dict[str, bytes]:
        pictures.main([])
        return {path.stem: path.read_bytes() for path in tmp_path.iterdir()}

    first = drawn()
    assert set(first) == {*pictures.OF_A_MODEL, *pictures.OF_RECORDS, *pictures.BY_HAND}
    assert drawn() == first
    assert all(first[name] == b"<svg/>" for name in pictures.OF_A_MODEL)
    assert all((DOCS / f"pictures/{name}.svg").exists() for name in first)


SENTENCES = [
    ("1-embedding", "embedding not scaled", "exact", 600, "{:.1f} % of dates are correct after 600 updates"),
    ("2-position", "without positions", "exact", 800, "After 800 updates {:.1f} % of dates are correct"),
    ("2-position", "without positions", "valid", 800, "the loss stays at {:.2f} nats per character"),
    ("3-attention", "attention not scaled", "exact", 400, "{:.1f} % of dates are correct after 400 updates"),
    ("3-attention", "attention not scaled", "exact", 800, "{:.1f} % after 800, against 99.6 % and 100 %"),
    ("3-attention", "as in the paper", "exact", 400, "against {:.1f} % and 100 %"),
    ("4-heads", "one head", "exact", 200, "{:.1f} % of dates are correct after 200 updates"),
    ("4-heads", "as in the paper", "exact", 200, "against {:.1f} %"),
    ("5-masks", "without the mask over the future", "valid", 800, "to {:.4f} nats per character"),
    (
        "6-feed-forward",
        "without the feed-forward networks",
        "exact",
        400,
        "networks {:.1f} % of dates are correct after 400",
    ),
    ("6-feed-forward", "without the ReLU", "exact", 600, "without the ReLU {:.1f} % after 600"),
    ("8-encoder-and-decoder", "without the memory", "valid", 800, "the loss stays at {:.2f} nats per character"),
    ("9-projection", "three tables", "exact", 200, "{:.1f} % are correct after 200 updates"),
    ("9-projection", "three tables", "exact", 600, "and {:.1f} % after 600"),
    ("10-learning", "with label smoothing", "exact", 400, "({:.1f} % after 400 updates)"),
    ("10-learning", "with label smoothing", "valid", 800, "stays at {:.2f} nats per character"),
    ("7-add-and-norm", "without residual", "valid", 800, "the loss stays at {:.2f} nats per character"),
    ("7-add-and-norm", "without norm", "exact", 250, "{:.1f} % against"),
    ("7-add-and-norm", "as in the paper", "exact", 250, "against {:.1f} % after 250 updates"),
]


@pytest.mark.parametrize(("page", "variant", "measure", "step", "words"), SENTENCES)
def test_a_sentence_of_the_walk_says_what_was_measured(
    page: str, variant: str, measure: str, step: int, words: str, pages: ModuleType
) -> None:
    (value,) = [point[measure] for point in pages.record("ablations")[variant] if point["step"] == step]
    assert words.format(value) in (DOCS / f"walk/{page}.md").read_text(encoding="utf-8")


def test_no_date_is_right_without_the_mask_over_the_future(pages: ModuleType) -> None:
    assert {point["exact"] for point in pages.record("ablations")["without the mask over the future"]} == {0.0}


def test_every_task_is_right_to_the_last_pair(pages: ModuleType) -> None:
    for name, about in pages.record("tasks").items():
        assert {run["exact"] for run in about["runs"]} == {100.0}, name
    assert len(pages.record("tasks")["numbers"]["runs"]) >= 3


def test_the_names_of_tutorials_lead_to_what_there_is() -> None:
    rows = re.findall(r"^\| .* \| `(\w+)` in `([a-z/]+\.py)` \|$", (DOCS / "paper.md").read_text(), re.MULTILINE)
    assert len(rows) >= 15
    for name, file in rows:
        assert re.search(
            rf"^(class|def) {name}\b", (DOCS.parent / "src/allyouneed" / file).read_text(), re.MULTILINE
        ), name
