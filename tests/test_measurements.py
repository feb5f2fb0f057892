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
    pictures.main([])
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in pictures.OF_A_MODEL:
        assert drawn.pop(f"{name}.svg") == b"<svg/>"
        assert (DOCS / f"pictures/{name}.svg").exists()
    assert drawn.keys() == {f"{name}.svg" for name in (*pictures.OF_RECORDS, *pictures.BY_HAND)}
    assert drawn == {name: (DOCS / "pictures" / name).read_bytes() for name in drawn}, "python docs/make/pictures.py"


FIGURES = [
    ("1-embedding", "embedding not scaled", "exact", 600),
    ("2-position", "without positions", "exact", 800),
    ("2-position", "without positions", "valid", 800),
    ("3-attention", "attention not scaled", "exact", 400),
    ("3-attention", "attention not scaled", "exact", 800),
    ("3-attention", "as in the paper", "exact", 400),
    ("4-heads", "one head", "exact", 200),
    ("4-heads", "as in the paper", "exact", 200),
    ("5-masks", "without the mask over the future", "valid", 800),
    ("6-feed-forward", "without the feed-forward networks", "exact", 400),
    ("6-feed-forward", "without the ReLU", "exact", 600),
    ("7-add-and-norm", "without residual", "valid", 800),
    ("7-add-and-norm", "without norm", "exact", 250),
    ("7-add-and-norm", "as in the paper", "exact", 250),
    ("8-encoder-and-decoder", "without the memory", "valid", 800),
    ("9-projection", "three tables", "exact", 200),
    ("9-projection", "three tables", "exact", 600),
    ("10-learning", "with label smoothing", "exact", 400),
    ("10-learning", "with label smoothing", "valid", 800),
]


def tells(text: str, measure: str, value: float) -> bool:
    """Return True if a text has a figure: a share of dates in %, or a loss in nats with two decimals or four."""
    figures = [f"{value:.1f} %"] if measure == "exact" else [f"{value:.2f}", f"{value:.4f}"]
    return any(re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d)", text) for figure in figures)


@pytest.mark.parametrize(("page", "variant", "measure", "step"), FIGURES)
def test_a_page_of_the_walk_has_the_figure_that_was_measured(
    page: str, variant: str, measure: str, step: int, pages: ModuleType
) -> None:
    (value,) = [point[measure] for point in pages.record("ablations")[variant] if point["step"] == step]
    assert tells((DOCS / f"walk/{page}.md").read_text(encoding="utf-8"), measure, value), value


def test_another_figure_is_not_taken_for_it() -> None:
    assert tells("After 600 updates 31.5 % are correct.", "exact", 31.5)
    assert tells("The loss stays at 1.25 nats.", "valid", 1.2476)
    assert not tells("131.5 %, 31.52 % or 31.5 nats", "exact", 31.5)
    assert not tells("The loss stays at 1.26 nats.", "valid", 1.2476)


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
