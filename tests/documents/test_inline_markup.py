"""Tags in a string: pairs, points, and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.inline_markup import take_out_codes, with_blanks, without_blanks
from allyouneed.apps.documents.unit import Mark, nesting_problem
from document_checks import assert_identity, read, translated


@given(
    st.lists(
        st.sampled_from(
            [
                "a ",
                "<b>",
                "</b>",
                "<i>",
                "</i>",
                "<br/>",
                "</0>",
                "<0>",
                "<",
                "x<y ",
                "x",
                "<br>",
                "</p>",
                "&amp;",
                "&",
                "&nbsp;",
                "&x;",
                "\\n",
                "<rt>y</rt>",
                "%<b>d",
            ]
        ),
        max_size=12,
    )
)
def test_any_string_comes_back_and_its_marks_are_nested(parts: list[str]) -> None:
    string = "".join(parts)
    marked = take_out_codes(string)
    assert nesting_problem(marked.text, marked.marks) == ""
    unit = marked.unit("")
    assert marked.restored(UnitTranslation(unit.text, unit.marks)) == string


@pytest.mark.parametrize(
    ("string", "text"),
    [
        ("First line<br/>second line", "First line second line"),
        ("<b>One</b><br><br>two", "One\ntwo"),
        ("One<br> two <BR>three<br>", "One two three"),
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("super<b>market</b>", "supermarket"),
        ("one\\ntwo\\r\\nThree", "one\ntwo\nThree"),
        ("Dear Tom, <br>The file<br>is open", "Dear Tom, \nThe file is open"),
        ("<a>Home</a><a>The files</a>", "Home\nThe files"),
        ("<b>Note</b>The file", "Note\nThe file"),
        ("5&nbsp;files&#8239;and&#10;more", "5 files and more"),
    ],
)
def test_a_line_break_has_a_blank_in_the_text_or_ends_a_line(string: str, text: str) -> None:
    marked = take_out_codes(string)
    assert marked.text == text
    assert marked.restored(UnitTranslation(marked.text, marked.marks)) == string


def test_a_blank_is_taken_out_beside_its_tag_alone() -> None:
    marked = take_out_codes("One two<br>three")
    assert marked.restored(UnitTranslation("X Y Z", (Mark(1, 0, "point"),))) == "X<br>Y Z"
    assert marked.restored(UnitTranslation("X Y Z", (Mark(2, 0, "point"),))) == "X<br>Y Z"
    assert marked.restored(UnitTranslation("XYZ", (Mark(2, 0, "point"),))) == "XY<br>Z"


@pytest.mark.parametrize(
    ("string", "kinds"),
    [
        ("<b>a</b>", "open close"),
        ("<b>a<br>c</b>", "open point close"),
        ("a</b> <b>c", "point point"),
        ("<b>a<i>c</b>d</i>", "open point close point"),
        ("<B>a</b>", "open close"),
        ("<0>a<1/></0>", "open point close"),
        ("a < b and c > d, <https://a.example>", "point"),
    ],
)
def test_worked_cases(string: str, kinds: str) -> None:
    assert " ".join(mark.kind for mark in take_out_codes(string).marks) == kinds


@pytest.mark.parametrize(
    ("string", "text", "target", "expected"),
    [
        ("Terms &amp; co &rarr;", "Terms & co →", "A & B →", "A &amp; B &rarr;"),
        ("R&D &amp; more &lt;b&gt;", "R&D & more <b>", "R&D & X <b> & <", "R&D &amp; X &lt;b&gt; &amp; &lt;"),
        ("it&#8217;s &#x2019;", "it’s ’", "’ ’ ’", "&#8217; &#x2019; &#x2019;"),
        (
            "&brandShortName; &foo &#xD800;",
            "&brandShortName; &foo &#xD800;",
            "&brandShortName; &",
            "&brandShortName; &",
        ),
        ("Q&A < 3", "Q&A < 3", "Q&A < 3 & >", "Q&A < 3 & >"),
        ("&amp;lt; is <", "&lt; is <", "&lt; è <", "&amp;lt; è <"),
        ("caf&eacute;", "café", "caffè", "caffè"),
    ],
)
def test_references_are_read_as_characters_and_written_as_the_string_has_them(
    string: str, text: str, target: str, expected: str
) -> None:
    marked = take_out_codes(string)
    assert marked.text == text
    assert marked.restored(UnitTranslation(target)) == expected


def test_a_reading_is_a_text_of_its_own() -> None:
    marked = take_out_codes("the <ruby>house<rp>(</rp><rt>casa &amp;</rt><rp>)</rp></ruby> and <ruby>漢<rt>1</ruby>")
    unit = marked.unit("")
    assert unit.text == "the house and 漢\ncasa &"
    assert marked.restored(UnitTranslation("LA X E 漢\nY &", ())) == "LA X E 漢"
    written = marked.restored(UnitTranslation("the house and 漢\nY &", unit.marks))
    assert written == "the <ruby>house<rp>(</rp><rt>Y &amp;</rt><rp>)</rp></ruby> and <ruby>漢<rt>1</ruby>"


def test_a_tag_in_a_placeholder_is_none() -> None:
    marked = take_out_codes("%<total>d <b>{0}</b> {n, plural, one {<i>#</i>}} C:\\new")
    assert marked.text == "%<total>d {0} {n, plural, one {<i>#</i>}} C:\\new"


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
    assert "some width\nand goes on" in unit.text
    assert_identity(data, "txt")


def test_marks_in_one_place_have_one_blank_which_one_of_them_takes_out() -> None:
    marks = [Mark(3, 0, "point"), Mark(3, 1, "point"), Mark(6, 2, "point")]
    text, moved, blanks = with_blanks("onetwo", marks, {(0, "point"), (1, "point"), (2, "point")})
    assert (text, [mark.at for mark in moved], set(blanks)) == ("one two", [3, 4, 7], {(0, "point")})
    assert without_blanks(text, moved, blanks) == ("onetwo", marks)
    assert without_blanks("X Y Z", [Mark(2, 0, "point")], blanks) == ("XY Z", [Mark(1, 0, "point")])
    first = [Mark(0, 0, "point"), Mark(0, 1, "point"), Mark(1, 2, "point")]
    assert [mark.at for mark in without_blanks(" X", first, {(0, "point"): " ", (1, "point"): " "})[1]] == [0, 0, 0]
