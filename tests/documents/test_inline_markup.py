"""Tags in a string: pairs, points, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents.inline_markup import take_out_tags
from allyouneed.apps.documents.unit import Mark, nesting_problem


@given(
    st.lists(
        st.sampled_from(["a ", "<b>", "</b>", "<i>", "</i>", "<br/>", "</0>", "<0>", "<", "x<y ", "x", "<br>", "</p>"]),
        max_size=12,
    )
)
def test_any_string_comes_back_and_its_marks_are_nested(parts: list[str]) -> None:
    string = "".join(parts)
    marked = take_out_tags(string)
    assert nesting_problem(marked.text, marked.marks) == ""
    assert marked.restored(marked.text, marked.marks) == string


@pytest.mark.parametrize(
    ("string", "text"),
    [
        ("First line<br/>second line", "First line second line"),
        ("<b>one</b><br><br>two", "one two"),
        ("one<br> two <BR>three<br>", "one two three"),
        ("<p>One</p><p>Two</p>", "One Two"),
        ("super<b>market</b>", "supermarket"),
    ],
)
def test_a_line_break_has_a_blank_in_the_text(string: str, text: str) -> None:
    marked = take_out_tags(string)
    assert marked.text == text
    assert marked.restored(marked.text, marked.marks) == string


def test_a_blank_is_taken_out_beside_its_tag_alone() -> None:
    marked = take_out_tags("one two<br>three")
    assert marked.restored("X Y Z", [Mark(1, 0, "point")]) == "X<br>Y Z"
    assert marked.restored("X Y Z", [Mark(2, 0, "point")]) == "X<br>Y Z"
    assert marked.restored("XYZ", [Mark(2, 0, "point")]) == "XY<br>Z"


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
    assert " ".join(mark.kind for mark in take_out_tags(string).marks) == kinds
