"""A string as one unit: its lines, its tags, and what is no text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.apps.documents import UnitTranslation
from allyouneed.apps.documents.string_unit import StringUnit, has_words, is_same_in_all_languages


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
