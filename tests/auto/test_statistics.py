import random

import pytest

from allyouneed.auto.statistics import PairStatistics, measure_pairs, split_units
from allyouneed.data.pairs import Pair
from messages import numbers_in


def measure(*pairs: tuple[str, str]) -> PairStatistics:
    return measure_pairs([Pair(*pair) for pair in pairs])


def test_units_are_words_digits_and_marks_and_single_characters_of_scripts_without_spaces() -> None:
    assert split_units("Don't add 12 naïve cafés!") == [
        "Don", "'", "t", "add", "1", "2", "naïve", "cafés", "!",
    ]  # fmt: skip
    assert split_units("abc漢字 हिन्दी") == ["abc", "漢", "字", "हिन्दी"]


def test_a_side_is_measured_by_hand() -> None:
    target = measure(("x", "one two"), ("y", "two two two"), ("z", "one two")).target
    assert (target.words, target.distinct, target.word_length) == (7 / 3, 2, 3)
    assert target.characters == (7 + 11 + 7) / 3
    assert target.repeated == pytest.approx(1 / 3)
    assert target.script == "Latin"


@pytest.mark.parametrize(
    ("texts", "symbols"),
    [
        (["K AH0 T", "T OW1 L"] * 40, 5),
        (["K AH0 T", "T OW1 L"] * 4, 0),
        (["AH0", "OW1"] * 40, 0),
        ([f"one {number}" for number in range(200)], 0),
    ],
)
def test_symbols_are_the_different_texts_between_spaces_if_they_are_few_and_recur(
    texts: list[str], symbols: int
) -> None:
    assert measure(*((text, text) for text in texts)).source.symbols == symbols


def test_new_words_are_those_of_every_tenth_text_that_no_other_text_has() -> None:
    open_side = measure(*((f"word{letter * 3}", "same") for letter in "abcdefghijklmnopqrst"))
    assert open_side.source.novel == 1
    assert open_side.target.novel == 0


@pytest.mark.parametrize(
    ("pairs", "expected"), [([("a", "b"), ("a", "b"), ("c", "d")], 1), ([("a", "b"), ("a", "c"), ("c", "d")], 1 / 2)]
)
def test_a_mapping_is_a_function_if_equal_sources_have_equal_targets(
    pairs: list[tuple[str, str]], expected: float
) -> None:
    assert measure(*pairs).functional == expected


def test_the_ratio_of_the_lengths_varies_by_its_deviation_as_a_share_of_its_mean() -> None:
    """One character more on each side, so that an empty one has a length: 2 / 2 and 6 / 2, mean 2, deviation 1."""
    assert measure(("a", "b"), ("c", "defgh")).length_spread == 1 / 2
    assert measure(("a", "bcd"), ("abc", "defghij")).length_spread == 0


def test_what_both_sides_have_in_common_is_a_share_of_the_target() -> None:
    statistics = measure(("a b c", "a x"))
    assert statistics.shared_words == 1 / 2
    assert statistics.shared_characters == 2 / 3  # a and the space


def test_what_is_copied_is_the_longest_string_of_both_sides() -> None:
    assert measure(("walk V;PST", "walked"), ("go", "went")).copied == 4 / 10


def test_the_order_of_a_copy_is_monotonic_and_that_of_a_reversed_text_is_not() -> None:
    rng, words = random.Random(1), ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    texts = [" ".join(rng.sample(words, 4)) for _ in range(60)]
    assert measure(*((text, text) for text in texts)).monotonic == 1
    assert measure(*((text, " ".join(text.split()[::-1])) for text in texts)).monotonic == 0


def test_a_side_without_words_is_described_without_words() -> None:
    described = measure(("12+3", "15"), ("4+4", "8")).describe()
    assert "word" not in described
    assert numbers_in(described)[:2] == [4, 2]
    assert " words" not in described


@pytest.mark.parametrize("pairs", [[("", "")], [("!", "!")], [("a", "")], [("日本", "123")], [("a" * 100_000, "b")]])
def test_any_pair_can_be_measured(pairs: list[tuple[str, str]]) -> None:
    assert measure(*pairs).describe().count(" → ") == 1
