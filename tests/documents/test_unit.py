"""Units and their marks."""

import html
import re

import pytest

from allyouneed.apps.documents import (
    DocumentOptions,
    Mark,
    TranslationUnit,
    document_format,
    interleave,
    read_document,
)
from allyouneed.apps.documents.document_translation import translate_document
from allyouneed.errors import DocumentError
from fake_translator import FakeTranslator
from unit_models import answer, read, untouched


@pytest.mark.parametrize(
    ("marks", "problem"),
    [
        ((Mark(0, 1, "open"),), "not closed"),
        ((Mark(0, 1, "open"), Mark(1, 2, "open"), Mark(1, 1, "close"), Mark(2, 2, "close")), "closes no"),
        ((Mark(9, 1, "point"),), "outside"),
        ((Mark(2, 1, "point"), Mark(1, 2, "point")), "order"),
        ((Mark(1, 1, "point"), Mark(2, 1, "point")), "twice"),
    ],
)
def test_marks_that_are_not_nested_are_refused(marks: tuple[Mark, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TranslationUnit(text="abc", marks=marks)


def test_parts_and_marks_come_in_their_order() -> None:
    marks = (Mark(0, 1, "open"), Mark(3, 1, "close"), Mark(3, 2, "point"))
    assert list(interleave("abc d", marks)) == [marks[0], "abc", marks[1], marks[2], " d"]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DocumentError, match="'pdf'"):
        read_document(b"", "pdf", DocumentOptions())
    assert document_format("manual.pdf") is None


XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>
<trans-unit id="1"><source>%s</source></trans-unit></body></file></xliff>"""
SOFT = [
    ("html", "<p>The won&shy;der&#8203;ful <b>com\xadput\xader</b></p>"),
    ("md", "The won&shy;der\u200bful **com\xadput\xader**\n"),
    ("txt", "The won\xadder\u200bful <b>com&shy;put&shy;er</b>\n"),
    ("json", '["The won\\u00adder\u200bful <b>com&shy;put&shy;er</b>"]'),
    ("csv", "text\nThe won\xadder\u200bful <b>com\xadput\xader</b>\n"),
    ("po", 'msgid "The won\xadder\u200bful <b>com&shy;put&shy;er</b>"\nmsgstr ""\n'),
    ("srt", "1\n00:00:01,000 --> 00:00:02,000\nThe won\xadder\u200bful <b>com\xadput\xader</b>\n"),
    ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nThe won&shy;der\u200bful <b>com\xadput\xader</b>\n"),
    ("xliff", XLIFF % "The won\xadder\u200bful &lt;b&gt;com\xadput\xader&lt;/b&gt;"),
]


@pytest.mark.parametrize(("kind", "text"), SOFT)
def test_no_format_has_soft_hyphens_in_what_is_translated(kind: str, text: str) -> None:
    document = read(kind, text, column="text" if kind == "csv" else "")
    assert [unit.text for unit in document.units] == ["The wonderful computer"]
    assert untouched(document) == text.encode()
    written = translate_document(document, FakeTranslator(str.upper)).data.decode()
    assert re.sub("<(/?)b>|&lt;(/?)b&gt;|[*][*]", "|", written).count("THE WONDERFUL |COMPUTER|") == 1


TAGGED = ">>ita<< The dog runs."
TAGGED_DOCUMENTS = [
    ("html", f"<p>{html.escape(TAGGED)}</p><p>{TAGGED}</p>"),
    ("md", f"{TAGGED}\n\n- {TAGGED}\n\n> {TAGGED}\n\n# {TAGGED}\n\n>>quoted\n"),
    ("txt", f"{TAGGED}\n> {TAGGED}\n"),
    ("json", f'["{TAGGED}"]'),
    ("csv", f"text\n{TAGGED}\n"),
    ("po", f'msgid "{TAGGED}"\nmsgstr ""\n'),
    ("srt", f"1\n00:00:01,000 --> 00:00:02,000\n{TAGGED}\n"),
    ("vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\n{html.escape(TAGGED)}\n"),
    ("xliff", XLIFF % html.escape(TAGGED)),
]


@pytest.mark.parametrize(("kind", "text"), TAGGED_DOCUMENTS)
def test_the_tag_of_a_language_is_part_of_the_text_in_every_format(kind: str, text: str) -> None:
    document = read(kind, text, column="text" if kind == "csv" else "")
    assert {unit.text for unit in document.units} - {"quoted"} == {TAGGED}
    assert untouched(document) == text.encode()
    written = answer(document, lambda text: text.removeprefix(">>ita<< ").upper()).decode()
    assert written.count("THE DOG RUNS.") == text.count("The dog runs.")


def test_joiners_of_a_script_are_read_and_written_as_the_string_has_them() -> None:
    document = read("json", '["\u0645\u06cc&zwnj;\u062e\u0648\u0627\u0647\u0645"]')
    assert document.units[0].text == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert answer(document, lambda text: text[1:]) == '["\u06cc&zwnj;\u062e\u0648\u0627\u0647\u0645"]'.encode()
