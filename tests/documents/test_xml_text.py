"""Texts with tags of any vocabulary: where sentences end, what stays as it is, and that nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents.document_translation import translate_document
from allyouneed.apps.documents.unit import TagRules
from allyouneed.apps.documents.xml_text import read_xml_text
from fake_translator import FakeTranslator


def rules(*, ignored: str = "", splitting: str = "", non_splitting: str = "", outline: bool = True) -> TagRules:
    return TagRules(frozenset(ignored.split()), frozenset(splitting.split()), frozenset(non_splitting.split()), outline)


def units(text: str, tags: TagRules | None = None) -> list[str]:
    return [unit.text for unit in read_xml_text(text, tags or rules()).units]


def capitals(text: str, tags: TagRules | None = None, *, keep_lines: bool = False) -> str:
    document = read_xml_text(text, tags or rules(), keep_lines=keep_lines)
    return translate_document(document, FakeTranslator(str.upper)).data.decode()


BOOK = "<book>\n <title>A title</title>\n <par>One <x>two</x> three.</par>\n <par>Four</par></book>"


def test_tags_beside_text_are_markup_and_others_are_structure() -> None:
    assert units(BOOK) == ["A title", "One two three.", "Four"]
    assert capitals(BOOK) == BOOK.upper().replace("BOOK", "book").replace("TITLE>", "title>").replace(
        "PAR>", "par>"
    ).replace("X>", "x>")
    assert units("<b>All</b> <i>of it</i>") == ["All of it"]  # as in HTML
    assert units("<B>All</B> <seg>of it</seg>") == ["All", "of it"]


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("<par>It had</par> <par>begun.</par>", rules(non_splitting="par"), ["It had begun."]),
        ("One <x>two</x> three", rules(splitting="x"), ["One", "two", "three"]),
        ("One<x/>two", rules(splitting="x"), ["One", "two"]),
        ("<a><t>One</t> <p>two</p> <p>three</p></a>", rules(outline=False, splitting="t"), ["One", "two three"]),
        ("One <X>two</X>", rules(splitting="x"), ["One two"]),  # XML tells capitals apart
    ],
)
def test_rules_say_where_a_sentence_ends(text: str, tags: TagRules, expected: list[str]) -> None:
    assert units(text, tags) == expected


def test_ignored_tags_keep_their_content() -> None:
    tags = rules(ignored="x")
    text = "Open <x>the <b>Settings</b></x> page, <x/> or <x>a &lt; b</x>."
    assert capitals(text, tags) == "OPEN <x>the <b>Settings</b></x> PAGE, <x/> OR <x>a &lt; b</x>."
    document = read_xml_text(text, tags)
    turned = translate_document(document, FakeTranslator(str.upper, reverse=True)).data.decode()
    assert turned.count("<x>the <b>Settings</b></x>") == turned.count("<x/>") == 1
    assert capitals("<p>One</p><x>two</x>", tags) == "<p>ONE</p><x>two</x>"
    assert capitals("One <x>two", tags) == "ONE <x>TWO"  # it has no end


def test_line_breaks_are_blanks_or_stay() -> None:
    assert capitals("<p>One\n  two</p>") == "<p>ONE TWO</p>"
    assert capitals("<p>One\n  two</p>", keep_lines=True) == "<p>ONE\n  TWO</p>"


def test_characters_are_read_and_written_as_xml_has_them() -> None:
    text = "a &lt; b &amp; c&#233; <![CDATA[no <b>]]> <title>d <b>e</b></title><!-- no --><?no?> f <x/> g<br/>h"
    assert units(text) == ["a < b & cé no <b> d e f g", "h"]
    expected = "A &lt; B &amp; CÉ <![CDATA[no <b>]]> <title>D <b>E</b></title><!-- no --><?no?> F <x/> G<br/>H"
    assert capitals(text) == expected


PARTS = [
    "a ",
    "B.",
    "<x>",
    "</x>",
    "<y a='>'>",
    "</y>",
    "<z/>",
    "<b>",
    "</b>",
    "&amp;",
    "<",
    "\n",
    "<!--",
    "-->",
    "<İ>",
    "</İ >",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.booleans(), st.booleans())
def test_any_text_comes_back(parts: list[str], outline: bool, keep_lines: bool) -> None:
    text = "".join(parts)
    document = read_xml_text(text, rules(ignored="x", splitting="z", outline=outline), keep_lines=keep_lines)
    assert document.write([None] * len(document.units)).decode() == text
    assert translate_document(document, FakeTranslator()).data.decode() == text


@pytest.mark.parametrize(
    ("text", "source", "units"),
    [
        ('<a xml:lang="en"><p>the house</p><p xml:lang="fr">le chat</p></a>', "", ["the house"]),
        ('<p>the word <i xml:lang="de">Fernweh</i> is</p>', "en", ["the word Fernweh is"]),
        ('<p xml:lang="en-GB">the house</p><p xml:lang="it">la casa</p>', "en", ["the house"]),
        ('<p xml:lang="fr">le chat</p>', "", ["le chat"]),
    ],
)
def test_what_is_marked_as_another_language_stays(text: str, source: str, units: list[str]) -> None:
    document = read_xml_text(text, source_language=source)
    assert [unit.text for unit in document.units] == units
    assert all(unit.opaque for unit in document.units if "Fernweh" in unit.text)
