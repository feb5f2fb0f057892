"""What is refused because it is no text."""

from typing import Any

import pytest

from allyouneed.bundle import Bundle
from allyouneed.errors import InputError
from allyouneed.translator import Translator


def test_a_string_in_place_of_a_list_is_refused_and_not_taken_apart(bundle: Bundle) -> None:
    translator: Any = Translator(bundle)
    for refused in (translator.translate, lambda text: list(translator.translations(text)),
                    lambda text: list(translator.score(text))):  # fmt: skip
        with pytest.raises(InputError, match="'abc'"):
            refused("abc")
    with pytest.raises(InputError, match="got 'ab'") as refusal:
        list(translator.score([("a", "b"), "ab"]))
    assert refusal.value.line == 2


def test_what_is_no_text_is_refused_by_line(bundle: Bundle) -> None:
    translator: Any = Translator(bundle)
    with pytest.raises(InputError, match="got None") as refusal:
        translator.translate(["abc", None])
    assert refusal.value.line == 2
    for refused in (translator, translator.alternatives, lambda text: list(translator.stream(text))):
        with pytest.raises(InputError, match=r"\['abc'\]"):
            refused(["abc"])
