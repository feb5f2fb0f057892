"""`translate` on documents: read and written whole, with a summary of what to review."""

import gzip
import json
from pathlib import Path

import pytest

from allyouneed.apps.cli.document import document_kind
from allyouneed.errors import InputError
from shell import refusal, run_here

PAGE = b'<html lang="en"><p>abc <b>dea</b></p><p>bad cab</p></html>'


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_bytes(PAGE.replace(b" ", b"e").replace(b"htmlelang", b"html lang"))  # this vocabulary has no blank
    return path


def test_a_document_is_translated_into_a_file(saved: Path, page: Path) -> None:
    output, review = page.with_name("page.it.html"), page.with_name("review.jsonl")
    result = run_here(
        "translate", saved, page, "--output", output, "--target-language", "it", "--min-confidence", 0,
        "--review", review,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout == b""
    written = output.read_text()
    assert written.startswith('<html lang="it"><p>')
    assert written.count("<b>") == written.count("</b>") == 1
    message = result.stderr.decode()
    assert f"{output}: 2 units, 2 translated, 0 kept" in message
    assert "2 to review" in message
    assert "  line 1: " in message
    items = [json.loads(line) for line in review.read_text().splitlines()]
    assert [item["source"] for item in items] == ["abcedea", "badecab"]
    assert all("low confidence" in " ".join(item["reasons"]) for item in items)


def test_the_list_for_review_is_no_file_that_another_option_names(saved: Path, page: Path) -> None:
    for review in (page, page.with_name("out.html"), page.parent / "." / "out.html"):
        line = refusal("translate", saved, page, "--output", page.with_name("out.html"), "--review", review)
        assert "named twice" in line
    assert not page.with_name("out.html").exists()


def test_a_text_that_is_refused_stops_the_work_or_is_left_out(saved: Path, tmp_path: Path) -> None:
    page, output = tmp_path / "a.html", tmp_path / "b.html"
    page.write_text("<p>abc</p>\n<p>xyz</p>")
    assert "line 2: 'x'" in refusal("translate", saved, page, "--output", output)
    assert not output.exists()
    result = run_here("translate", saved, page, "--output", output, "--skip-refused")
    assert result.returncode == 3
    assert "2 units, 1 translated, 0" in result.stderr.decode()
    assert output.read_text().endswith("\n<p>xyz</p>")


@pytest.mark.parametrize(
    ("content", "words", "reason"),
    [
        ("<p>12</p>", [], "(see --numbers)"),
        ("<p>...</p>", ["--numbers"], "no text"),
        ('msgid "12"\nmsgstr ""\n', ["--format", "po"], "no letters"),
        ('msgid "abc"\nmsgstr "x"\n', ["--format", "po"], "1 unit"),
    ],
)
def test_a_document_with_nothing_to_translate_is_copied_and_the_message_says_why(
    saved: Path, tmp_path: Path, content: str, words: list[str], reason: str
) -> None:
    page, output = tmp_path / "a.html", tmp_path / "b.html"
    page.write_text(content)
    result = run_here("translate", saved, page, "--output", output, *words)
    assert result.returncode == 0
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith(f"{output}: ")
    assert reason in line
    assert output.read_text() == content


def test_a_document_may_come_from_standard_input(saved: Path, tmp_path: Path) -> None:
    words = ("translate", saved, "-", "--format", "html", "--output", tmp_path / "b.html")
    assert run_here(*words, stdin=b"<p>abc</p>").returncode == 0
    assert (tmp_path / "b.html").read_text().startswith("<p>")


def test_packed_text_is_lines_whatever_its_ending(saved: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "news.txt.gz", "wb") as file:
        file.write(b"abc\nabd\n")
    assert run_here("translate", saved, tmp_path / "news.txt.gz").stdout.count(b"\n") == 2


def test_a_document_may_be_translated_as_lines(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("abc\nabd\n")
    result = run_here("translate", saved, tmp_path / "a.html", "--format", "lines")
    assert result.stdout.count(b"\n") == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["{page}"], "--output FILE"),
        (["{page}", "--output", "{page}", "--overwrite"], "named twice"),
        (["{page}", "--output", "out.html", "--json", "--nbest", "2"], "leave out --json, --nbest"),
        (["{page}", "--output", "out.html", "--format", "pdf"], " txt, "),
        (["-", "--column", "2"], "(see --format); leave out --column"),
        (["a.html.gz", "--output", "out"], "packed document"),
        (["a.PDF"], " txt, "),
        (["a.TMX"], "allyouneed train"),
        (["missing.html", "--output", "out.html"], "missing.html "),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], reason: str, saved: Path, page: Path) -> None:
    assert reason in refusal("translate", saved, *(word.format(page=page) for word in words), cwd=page.parent)
    assert sorted(path.name for path in page.parent.iterdir()) == ["bundle", "page.html"]


@pytest.mark.parametrize(
    "ending",
    [
        "properties",
        "strings",
        "resx",
        "ftl",
        "ttml",
        "ssa",
        "lrc",
        "sbv",
        "ts",
        "rst",
        "tex",
        "jsonc",
        "stringsdict",
        "xml",
        "yml",
        "ass",
        "ini",
        "toml",
        "sql",
        "py",
        "adoc",
    ],
)
def test_lines_of_what_has_another_structure_are_not_translated(ending: str) -> None:
    with pytest.raises(InputError, match=rf"a\.{ending} .*--format lines"):
        document_kind(f"a.{ending}", None)
    assert document_kind(f"a.{ending}", "lines") is None


@pytest.mark.parametrize("name", ["-", "a", "a.txt", "test.en", "a.pt-BR", "a.src", "news.2016", "a.en.gz"])
def test_text_is_translated_by_lines(name: str) -> None:
    assert document_kind(name, None) is None


def test_what_is_not_of_its_format_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    assert "a.json is not JSON" in refusal("translate", saved, tmp_path / "a.json", "--output", tmp_path / "b.json")
