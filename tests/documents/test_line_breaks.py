"""Line breaks of HTML in strings: the words beside them are apart, in every format, and no blank is written there."""

from typing import Any

import pytest

from allyouneed.apps.documents.line_breaks import with_blanks, without_blanks
from allyouneed.apps.documents.unit import Mark
from document_checks import assert_identity, read, translated

XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>
<trans-unit id="1"><source>%s</source></trans-unit></body></file></xliff>"""


@pytest.mark.parametrize(
    ("kind", "data", "text", "written"),
    [
        ("json", '["<p>One</p><p>Two <b>three</b></p>"]', "One\nTwo three", "<p>ONE</p><p>TWO <b>THREE</b></p>"),
        ("json", '["<ul><LI>red</LI><li>green</li></ul>"]', "red\ngreen", "<ul><LI>RED</LI><li>GREEN</li></ul>"),
        ("json", '["at <address>:<port><pre-x>"]', "at :", "AT <address>:<port><pre-x>"),
        ("po", 'msgid "One<br/>two"\nmsgstr ""\n', "One two", "ONE<br/>TWO"),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\nOne<br/>two\n", "One two", "ONE<br/>TWO"),
        ("txt", "One<br>two\n", "One two", "ONE<br>TWO"),
        ("txt", "<li>red</li><li> green </li>\n", "red|green", "<li>RED</li><li> GREEN </li>"),
        ("csv", "text\nOne<br>two\n", "One two", "ONE<br>TWO"),
        ("xliff", XLIFF % 'One<x id="1" ctype="lb"/>two', "One two", '>ONE<x id="1" ctype="lb"/>TWO<'),
        ("xliff", XLIFF % 'One<ph id="1">&lt;br/></ph>two', "One two", '>ONE<ph id="1">&lt;br/&gt;</ph>TWO<'),
        ("xliff", XLIFF % 'One<x id="1" ctype="x-p"/>two', "One two", '>ONE<x id="1" ctype="x-p"/>TWO<'),
        ("xliff", XLIFF % 'One<x id="1" equiv-text="&lt;p>"/>two', "One two", ' equiv-text="&lt;p&gt;"/>TWO<'),
        ("xliff", XLIFF % "One&lt;br/&gt;two", "One two", ">ONE&lt;br/&gt;TWO<"),
        ("xliff", XLIFF % 'One<g id="1" ctype="bold">two</g>', "Onetwo", '<g id="1" ctype="bold">ONETWO</g><'),
    ],
)
def test_words_beside_a_line_break_are_apart(kind: str, data: str, text: str, written: str) -> None:
    options: dict[str, Any] = {"column": "text"} if kind == "csv" else {}
    assert "|".join(unit.text for unit in read(data.encode(), kind, **options).units) == text
    assert written in translated(data.encode(), kind, **options).decode()
    if kind in ("json", "srt", "txt"):
        assert_identity(data.encode(), kind)


def test_text_that_was_wrapped_has_blanks_for_its_tags() -> None:
    data = b"<p>One paragraph that is wrapped at some width</p><p>and goes on\nin a second line of the same text.</p>\n"
    (unit,) = read(data, "txt").units
    assert "some width and goes on in a second" in unit.text
    assert_identity(data, "txt")


def test_marks_in_one_place_have_one_blank_which_one_of_them_takes_out() -> None:
    marks = [Mark(3, 0, "point"), Mark(3, 1, "point"), Mark(6, 2, "point")]
    text, moved, blanks = with_blanks("onetwo", marks, {(0, "point"), (1, "point"), (2, "point")})
    assert (text, [mark.at for mark in moved], set(blanks)) == ("one two", [3, 4, 7], {(0, "point")})
    assert without_blanks(text, moved, blanks) == ("onetwo", marks)
    assert without_blanks("X Y Z", [Mark(2, 0, "point")], blanks) == ("XY Z", [Mark(1, 0, "point")])
    first = [Mark(0, 0, "point"), Mark(0, 1, "point"), Mark(1, 2, "point")]
    assert [mark.at for mark in without_blanks(" X", first, {(0, "point"), (1, "point")})[1]] == [0, 0, 0]
