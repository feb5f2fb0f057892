"""Tags in a string: pairs, points, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.documents.inline_markup import take_out_tags
from allyouneed.documents.unit import nesting_problem


@given(
    st.lists(st.sampled_from(["a ", "<b>", "</b>", "<i>", "</i>", "<br/>", "</0>", "<0>", "<", "x<y "]), max_size=12)
)
def test_any_string_comes_back_and_its_marks_are_nested(parts: list[str]) -> None:
    string = "".join(parts)
    marked = take_out_tags(string)
    assert nesting_problem(marked.text, marked.marks) == ""
    assert marked.restored(marked.text, marked.marks) == string


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
