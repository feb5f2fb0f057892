"""`allyouneed explain`: a page, pictures or numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allyouneed.apps.cli import app
from allyouneed.bundle import Bundle, OtherDefinitionWarning
from allyouneed.errors import InputError, OutputError
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer


@pytest.fixture
def saved(bundle: Bundle, tmp_path: Path) -> Path:
    """Save a bundle with one layer on each side: few pictures."""
    config = replace(bundle.model.config, encoder_layers=1, decoder_layers=1)
    Bundle(Transformer(config).eval(), bundle.source_tokenizer, bundle.source_tokenizer, bundle.decode).save(
        tmp_path / "bundle"
    )
    return tmp_path / "bundle"


def test_a_page_is_written_once(saved: Path, tmp_path: Path) -> None:
    words = ["explain", str(saved), "abc", "--output", str(tmp_path / "page.html")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert isinstance(CliRunner().invoke(app, words).exception, OutputError)
    assert CliRunner().invoke(app, [*words, "--beam", "1", "--overwrite"]).exit_code == 0


def test_it_has_no_option_that_does_nothing() -> None:
    assert "--batch-size" not in CliRunner().invoke(app, ["explain", "--help"]).output


def test_every_figure_is_a_file(saved: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", str(saved), "abc", "--format", "svg", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.glob("*.svg")}
    assert {"lens.svg", "tree.svg", "decoder-0-cross_attention.svg"} <= names


def test_letters_that_the_font_lacks_are_named_in_one_sentence(bundle: Bundle, tmp_path: Path) -> None:
    tokenizer = Tokenizer.characters("中文字典一二三四五六")
    config = replace(bundle.model.config, encoder_layers=1, decoder_layers=1)
    Bundle(Transformer(config).eval(), tokenizer, tokenizer, bundle.decode).save(tmp_path / "bundle")
    words = ["explain", str(tmp_path / "bundle"), "中文", "--output", str(tmp_path), "--format"]
    png, svg = (CliRunner().invoke(app, [*words, kind]) for kind in ("png", "svg"))
    assert (png.exit_code, svg.exit_code) == (0, 0), png.output + svg.output
    assert png.stderr.count("--format svg") == 1
    assert "--format" not in svg.stderr


def test_the_numbers_come_as_json(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "numbers.json"
    assert (
        CliRunner().invoke(app, ["explain", str(saved), "abc", "--format", "json", "--output", str(path)]).exit_code
        == 0
    )
    assert json.loads(path.read_text())["text"] == "abc"


def test_a_glossary_and_the_options_of_the_search_are_those_of_translate(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("abc\tjj\n")
    path = tmp_path / "numbers.json"
    words = ["--glossary", str(tmp_path / "terms.tsv"), "decode.max_length=6", "--precision", "float32"]
    result = CliRunner().invoke(app, ["explain", str(saved), "abc", *words, "--format", "json", "--output", str(path)])
    assert result.exit_code == 0, result.output
    values = json.loads(path.read_text())
    assert "jj" in values["translation"]
    assert "“jj”" in values["note"]
    (tmp_path / "text").write_text("abc\n")
    translated = CliRunner().invoke(app, ["translate", str(saved), str(tmp_path / "text"), *words])
    assert translated.stdout == f"{values['translation']}\n"


def test_theory_needs_no_model(tmp_path: Path) -> None:
    words = ["explain", "--positions", "--schedule", "--masks", "--format", "png", "--output", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"positions.png", "schedule.png", "masks.png"}


@pytest.mark.parametrize("words", [[], ["runs/x"], ["runs/x", "text", "--masks"], ["--masks", "--format", "json"]])
def test_a_call_that_makes_no_sense_is_refused(words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["explain", *words]).exception, InputError)


def test_two_models_are_compared_on_one_page(saved: Path, tmp_path: Path) -> None:
    words = ["explain", str(saved), str(saved), "abc", "--output", str(tmp_path / "both.html")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "0 of 9 heads" in result.stderr
    assert (tmp_path / "both.html").read_text().count('"names":') == 1


def test_models_that_were_made_with_different_definitions_say_so(saved: Path, tmp_path: Path) -> None:
    older = tmp_path / "older"
    replace(Bundle.load(saved), definition="another").save(older)
    with pytest.warns(OtherDefinitionWarning):
        result = CliRunner().invoke(app, ["explain", str(saved), str(older), "abc", "-o", str(tmp_path / "page.html")])
    assert "older" in next(line for line in result.stderr.splitlines() if "another nn/" in line)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one", "two", "words"], "'one two words'"),
        (["{saved}"], "{saved} {saved} 'a text'"),
        (["{saved}", "abc", "--format", "json"], "--format"),
    ],
)
def test_what_is_no_comparison_is_refused(saved: Path, words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["explain", str(saved), *[word.format(saved=saved) for word in words]])
    assert isinstance(result.exception, InputError)
    assert message.format(saved=saved) in str(result.exception)
