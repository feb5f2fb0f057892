"""A string as one unit: its lines, its tags, and what is no text."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.string_unit import StringUnit, has_words, is_same_in_all_languages
from allyouneed.errors import DocumentError
from unit_models import answer, identity, read, texts, untouched


@given(st.text(st.sampled_from("ab .,-> \t\n1<>/{}%sé"), max_size=80))
def test_a_string_translated_as_itself_is_itself(string: str) -> None:
    one = StringUnit(string)
    if one.has_words:
        unit = one.unit("")
        assert one.translated(UnitTranslation(unit.text, unit.marks)) == string


def test_lines_stay_in_their_lines() -> None:
    one = StringUnit("\n  * Open <b>it</b>\n\n\tSave\n")
    assert one.unit("").text == "Open it\nSave"
    marks = one.unit("").marks
    assert (
        one.translated(UnitTranslation("Apri\nSalva", marks)) == "\n  * Apri\n\n\t<b>Sa</b>lva\n"
    )  # characters 5 to 7
    assert one.translated(UnitTranslation("Apri")) == "\n  * Apri\n\n\t\n"
    assert one.translated(UnitTranslation("a\nb\nc")) == "\n  * a\n\n\tb c\n"


@pytest.mark.parametrize(
    ("text", "words", "same"),
    [
        ("Open %s", True, False),
        ("%d: %s", False, True),
        ("42 – {0} {{name}}", False, True),
        ("{n, plural, one {# file} other {{n} files}}", False, False),
        ("{n, plural, one {# file} other {# files}} left", True, False),
        ("", False, True),
    ],
)
def test_placeholders_are_no_words(text: str, words: bool, same: bool) -> None:
    assert (has_words(text), is_same_in_all_languages(text)) == (words, same)


LETTER = """\
 Dear all,

The train to the coast leaves at eight, and
whoever is late must take the bus.

  1. bring bread
  2) bring a coat which is warm enough for the
     evening on the beach

> You wrote that the lighthouse is closed every
> first Monday and open otherwise.

Name\tAnna
-h, --help    show this
----------
"""


def test_every_line_is_a_unit_and_a_wrapped_paragraph_is_one() -> None:
    assert texts(read("txt", LETTER)) == [
        "Dear all,",
        "The train to the coast leaves at eight, and whoever is late must take the bus.",
        "bring bread",
        "bring a coat which is warm enough for the evening on the beach",
        "You wrote that the lighthouse is closed every first Monday and open otherwise.",
        "Name", "Anna", "-h, --help", "show this",
    ]  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_the_identity_gives_every_byte_back(mark: bytes, encoding: str, newline: str) -> None:
    data = mark + LETTER.replace("\n", newline).encode(encoding)
    document = read("txt", data)
    assert identity(document) == untouched(document) == data
    assert len(document.units) == 9


def test_a_longer_translation_is_wrapped_at_the_width_of_its_paragraph() -> None:
    text = "- a line of forty characters, which goes\r\n  on here\r\n"
    written = answer(read("txt", text), lambda _: " ".join(["word"] * 12))
    assert written == b"- word word word word word word word\r\n  word word word word word\r\n"


def test_lines_that_only_look_like_a_paragraph_stay_lines() -> None:
    poem = "Roses are red\nviolets are blue\n"  # too narrow for prose
    titles = "The first chapter of the book about the sea\nThe second chapter about land\n"  # no sentence goes on
    ragged = "a line that ends early,\nand one much longer than that which would have had room for its words\n"
    for text in (poem, titles, ragged):
        assert texts(read("txt", text)) == text.splitlines()


def test_the_key_of_a_unit_is_its_line() -> None:
    assert [unit.key for unit in read("txt", "a\n\nb\r\nc").units] == ["line 1", "line 3", "line 4"]


def test_tags_and_addresses_in_brackets_are_marks() -> None:
    (unit,) = read("txt", "see <b>here</b>, <https://a.example>").units
    assert (unit.text, [mark.kind for mark in unit.marks]) == ("see here, ", ["open", "close", "point"])


def test_another_encoding_is_named_and_kept() -> None:
    data = "Füße\n".encode("latin-1")
    assert identity(read("txt", data, encoding="latin-1")) == data
    with pytest.raises(DocumentError, match="line 1;"):
        read("txt", data)
    with pytest.raises(DocumentError, match="'no-such'"):
        read("txt", data, encoding="no-such")
    with pytest.raises(DocumentError, match="latin-1.*'日'"):
        answer(read("txt", data, encoding="latin-1"), {"Füße": "日本"})


@pytest.mark.parametrize(
    ("name", "codec"), [("utf-16", "utf-16-le"), ("UTF_32", "utf-32-le"), ("utf-8-sig", "utf-8"), ("U16", "utf-16-le")]
)
def test_a_file_without_a_byte_order_mark_gets_none(name: str, codec: str) -> None:
    document = read("txt", "Füße\n".encode(codec), encoding=name)
    assert answer(document, str.upper) == "FÜSSE\n".encode(codec)
    marked = "\ufeffFüße\n".encode(codec)
    assert answer(read("txt", marked, encoding=name), str.upper) == "\ufeffFÜSSE\n".encode(codec)


@given(st.text(st.sampled_from("ab.,-> \t\n\r1<>/\"'é"), max_size=200))
def test_any_text_comes_back_from_the_identity(text: str) -> None:
    assert identity(read("txt", text)) == text.encode()


def test_a_huge_line_is_read_at_once() -> None:
    for line in ("word " * 50_000, "<" * 100_000, " " * 150_000 + "a", "<b>" * 25_000 + "</i>" * 25_000):
        assert identity(read("txt", line)) == line.encode()
