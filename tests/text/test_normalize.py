"""What a model never reads: forms of characters that it was not trained on, and characters that nobody sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.text.normalize import Normalization, without_unseen
from vocabularies import UNSEEN


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("won\xadder\xadful", "wonderful"),
        ("o\u200bpen \u2060it", "open it"),
        ("\u200eHello\u200f \u202ato\u202c \u2066all\u2069", "Hello to all"),
        ("\ufeffthe house\ufeff", "the house"),
        ("co\u200c-op of\u200dfice", "co-op office"),
        ("\u200d\u200c", ""),
    ],
)
def test_soft_hyphens_and_spaces_without_width_are_not_read(written: str, read: str) -> None:
    assert without_unseen(written) == read
    assert Normalization()(written) == read


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Devanagari: two forms of one cluster
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala: Sri
        "\U0001f469\u200d\U0001f4bb \U0001f469\U0001f3fd\u200d\u2695\ufe0f \u2764\ufe0f\u200d\U0001f525",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
    ],
)
def test_joiners_stay_where_a_script_or_an_emoji_needs_them(text: str) -> None:
    assert without_unseen(text) == text
    assert Normalization(unicode="none")(text) == text


def test_whoever_trains_on_unseen_characters_can() -> None:
    assert Normalization(strip_control=False)("won\xadder") == "won\xadder"


@given(st.text(UNSEEN))
def test_a_normalized_text_is_normalized(text: str) -> None:
    once = Normalization()(text)
    assert Normalization()(once) == once
