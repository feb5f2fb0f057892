"""Texts in capitals become texts in small letters, as the training sources are, and come back."""

from dataclasses import asdict

import pytest

from allyouneed.config.settings import from_table
from allyouneed.errors import ConfigError
from allyouneed.text.letter_case import CaseStatistics, capitals, to_capitals

SOURCES = ["I see Tom.", "We say NATO and I agree.", "Tom left. We follow Tom.", "Is NATO here? I and NATO do."] * 3


def from_sources(sources: list[str]) -> CaseStatistics:
    return CaseStatistics.from_pairs((source, source) for source in sources)


USUAL = from_sources(SOURCES)


def test_the_words_are_those_that_have_capitals_inside_a_sentence() -> None:
    assert set(USUAL.capitalized) == {"I", "Tom", "NATO"}
    assert (USUAL.sources, USUAL.in_capitals, USUAL.begin_with_capital) == (12, 0, 12)


def test_a_word_is_kept_in_its_most_frequent_form() -> None:
    once = from_sources(["the Will and the will and a will and his will"] * 3)
    assert once.capitalized == ()
    assert from_sources(["of Will and of Will and a will"] * 3).capitalized == ("Will",)


@pytest.mark.parametrize(
    ("text", "small"),
    [
        ("WHERE IS TOM? I ASK NATO.", "Where is Tom? I ask NATO."),
        ("«STOP!» HE SAID", "«Stop!» he said"),
        ("<B>OPEN %S</B> AT http://a.b/C OR A.B@C.DE", "<B>Open %S</B> at http://a.b/C or A.B@C.DE"),
        ("ЗАКРЫТО НА ОБЕД", "Закрыто на обед"),
    ],
)
def test_a_text_in_capitals_in_small_letters(text: str, small: str) -> None:
    assert USUAL.to_sentence_case(text) == small
    assert to_capitals(small) == text


def test_sentences_begin_as_those_of_the_sources() -> None:
    assert from_sources(["a man sleeps", "A dog", "two dogs"]).to_sentence_case("A DOG") == "a dog"


def test_kept_positions_stay() -> None:
    assert USUAL.to_sentence_case("OPEN THE ACME DOOR", [(9, 13)]) == "Open the ACME door"


@pytest.mark.parametrize(
    ("text", "count"), [("NO SMOKING", 9), ("No SMOKING", 0), ("SEE http://a.b", 3), ("12 + 3", 0), ("禁煙", 0)]
)
def test_capitals_are_counted_where_no_letter_is_small(text: str, count: int) -> None:
    assert capitals(text) == count


def test_a_text_in_capitals_is_unusual_where_hardly_any_source_is() -> None:
    assert USUAL.is_unusual("NO SMOKING")
    assert not USUAL.is_unusual("NATO")  # perhaps an abbreviation
    assert not USUAL.is_unusual("No smoking")
    assert not from_sources([*SOURCES, "GO AWAY"]).is_unusual("NO SMOKING")
    assert not CaseStatistics().is_unusual("NO SMOKING")  # nothing is known of the sources


@pytest.mark.parametrize(
    ("targets", "is_unusual"),
    [("XXXX", True), ("xxxx", False), ("1111", True), ("xxxX", False), ("xxXX", True), ("xx", True)],
)
def test_capitals_are_translated_as_the_training_pairs_do(targets: str, is_unusual: bool) -> None:
    pairs = [("ab", "AB")] * 999 + [("ABCDE", target) for target in targets]
    assert CaseStatistics.from_pairs(pairs).is_unusual("FGHIJ") == is_unusual


def test_they_are_stored_as_a_table() -> None:
    assert from_table(CaseStatistics, asdict(USUAL)) == USUAL
    for damage in ({"sources": -1}, {"in_capitals": 1.5}, {"capitalized": "Tom"}, {"capitalized": [1]}):
        with pytest.raises((ConfigError, TypeError)):
            from_table(CaseStatistics, {**asdict(USUAL), **damage})
