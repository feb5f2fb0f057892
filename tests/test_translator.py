from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.errors import ConfigError, InputError
from allyouneed.translator import Translator

TEXTS = ["abc", "", "j", "ijabcdefg", "ab", "abcdefghij", ""]


@pytest.mark.parametrize("beam", [1, 3])
def test_many_are_translated_as_one_by_one_and_in_their_order(bundle: Bundle, beam: int) -> None:
    translator = Translator(bundle, decode=replace(bundle.decode, beam=beam))
    assert translator.translate(TEXTS) == [translator(text) for text in TEXTS]


def test_an_empty_text_stays_empty(bundle: Bundle) -> None:
    assert Translator(bundle)("") == ""
    assert Translator(bundle).translate([]) == []


def test_each_batch_says_how_many_it_finished(bundle: Bundle) -> None:
    told: list[int] = []
    Translator(bundle).translate(TEXTS, done=told.append)
    assert told == [3, 2]


def test_an_output_has_at_most_so_many_tokens_more_than_its_input(bundle: Bundle) -> None:
    torch.nn.init.zeros_(bundle.model.source_embedding.table)  # every word is as likely, so the end may never come
    for extra in (1, 4):
        translator = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=extra))
        (found,) = translator.translations(["ab"])
        assert found.tokens <= 2 + extra


def test_an_output_never_passes_the_models_longest(bundle: Bundle) -> None:
    translator = Translator(bundle)
    longest = "abcdefghijabcde"  # 15 letters and two signs: exactly max_length
    assert len(bundle.tokenizer.encode(longest)) == bundle.model.config.max_length
    translator(longest)


def test_a_text_that_is_too_long_is_refused_before_any_is_translated(bundle: Bundle) -> None:
    told: list[int] = []
    with pytest.raises(InputError, match="has 18 tokens and no place to cut it; this model reads") as refused:
        Translator(bundle).translate(["a", "a" * 16], done=told.append)
    assert refused.value.line == 2
    assert told == []


def test_a_stranger_is_refused_by_line(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="'X' at place 2 of 'aX' is not in the vocabulary") as refused:
        Translator(bundle).translate(["a", "b", "aX"])
    assert refused.value.line == 3


def test_it_loads_from_a_folder(bundle: Bundle, saved: Path) -> None:
    translator = Translator.load(str(saved), device="cpu", beam=3)
    assert translator.decode == replace(bundle.decode, beam=3)
    assert translator("abc") == Translator(bundle, decode=replace(bundle.decode, beam=3))("abc")


def test_a_device_that_is_not_there_is_refused(saved: Path) -> None:
    with pytest.raises(ConfigError, match='device must be "auto", "cpu", "cuda" or "mps"'):
        Translator.load(saved, device="toaster")
