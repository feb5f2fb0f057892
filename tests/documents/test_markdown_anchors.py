"""Links to headings lead to them after the headings have other words."""

import re

import pytest

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.document_translation import translate_document
from document_checks import assert_identity
from fake_translator import FakeTranslator
from unit_models import answer, read


def reversed_page(page: str) -> str:
    return translate_document(read("md", page), FakeTranslator(reverse=True)).data.decode()


def anchors(page: str) -> list[str]:
    return ["".join(match) for match in re.findall(r"#([^\s#()<>\"'{}]+)[\"')> ]|\]: *#(\S+)", page)]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("# One two\n\n[a b](#one-two)\n", ["two-one"]),
        ("One two\n=======\n\n[a b](#one-two) and <a href=\"#one-two\">c</a>\n", ["two-one", "two-one"]),
        ("Set *ext* two\n---\n\n[a][r]\n\n[r]: #set-ext-two 'title'\n", ["two-ext-set"]),
        ("# A b\n\n# A b\n\n[one](#a-b) [two](#a-b-1)\n", ["b-a-1", "b-a"]),
        ("# A b {#custom}\n\n[one](#custom)\n", ["custom"]),
        ('<a name="here"></a>\n\n# Here it is\n\n[one](#here) [two](#here-it-is)\n', ["here", "is-it-here"]),
        ("# What's `x()` & more?\n\n[one](#whats-x--more)\n", None),
        ("# What & more\n\n[one](#what-more)\n", ["more-what"]),
        ("# 1. Más sobre él\n\n[one](#1-m%C3%A1s-sobre-%C3%A9l)\n", ["%C3%A9l-sobre-m%C3%A1s-1"]),
        ("# One two\n\n[gone](#elsewhere) ![one two](a.png#one-two)\n", ["elsewhere", "one-two"]),
        ("# One two\n\n<div><a href='#one-two'>x</a></div>\n", ["two-one"]),
        ("# One two\n\n```\n[a](#one-two)\n```\n\n`[a](#one-two)`\n", ["one-two", "one-two"]),
        ("# One [two](#three-four)\n\n# Three four\n\n[**a** b](#one-two 'c d').\n", ["four-three", "two-one"]),
        ("> # One two\n\n- [x](#one-two)\n", ["two-one"]),
    ],
)  # fmt: skip
def test_links_follow_their_headings(page: str, names: list[str] | None) -> None:
    written = reversed_page(page)
    result = anchors(written)
    if names is None:
        assert result != ["whats-x--more"]
    else:
        assert sorted(result) == sorted(names)
    assert_identity(page.encode(), "md")


def test_two_headings_of_one_translation_are_told_apart() -> None:
    page = "# Start\n\n# Begin\n\n[one](#start) [two](#begin)\n"
    written = answer(read("md", page), lambda text: "Inizio" if text in ("Start", "Begin") else text).decode()
    assert "(#inizio)" in written
    assert "(#inizio-1)" in written


def test_an_anchor_stays_where_its_heading_does() -> None:
    page = "# One two\n\n[a b](#one-two)\n"
    document = read("md", page)
    new = [UnitTranslation("A B", unit.marks) if unit.text == "a b" else None for unit in document.units]
    assert document.write(new) == b"# One two\n\n[A B](#one-two)\n"


def test_a_link_to_a_heading_of_another_document_is_to_be_reviewed() -> None:
    page = "See [it](other.md#the-end), [that](https://a.example/b.md#c) and [this](other.md).\n"
    (item,) = translate_document(read("md", page), FakeTranslator()).review
    assert any("other.md#the-end" in reason for reason in item.reasons)
    assert len(item.reasons) == 1
