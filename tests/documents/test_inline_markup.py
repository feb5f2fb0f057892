"""Tags in a string: pairs, points, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.inline_markup import take_out_codes
from allyouneed.apps.documents.unit import Mark, nesting_problem


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
        ("<b>one</b><br><br>two", "one two"),
        ("one<br> two <BR>three<br>", "one two three"),
        ("<p>One</p><p>Two</p>", "One Two"),
        ("super<b>market</b>", "supermarket"),
        ("one\\ntwo\\r\\nthree", "one two three"),
        ("5&nbsp;files&#8239;and&#10;more", "5 files and more"),
        ("super&shy;market", "supermarket"),
    ],
)
def test_a_line_break_has_a_blank_in_the_text(string: str, text: str) -> None:
    marked = take_out_codes(string)
    assert marked.text == text
    assert marked.restored(UnitTranslation(marked.text, marked.marks)) == string


def test_a_blank_is_taken_out_beside_its_tag_alone() -> None:
    marked = take_out_codes("one two<br>three")
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
