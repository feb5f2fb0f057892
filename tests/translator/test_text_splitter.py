"""What is done with a text before it is translated."""

from dataclasses import replace
from typing import Any

import pytest

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.text.backends import word_backend
from allyouneed.text.letter_case import CaseStatistics
from allyouneed.text.normalize import Normalization
from allyouneed.text.spans import CopyStatistics
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator


def test_a_text_that_is_too_long_is_refused_before_any_is_translated(bundle: Bundle) -> None:
    counts: list[int] = []
    with pytest.raises(InputError, match="has 18 tokens and no place to cut it; this model reads") as refused:
        Translator(bundle).translate(["a", "a" * 16], on_progress=counts.append)
    assert refused.value.line == 2
    assert counts == []


def test_a_stranger_is_refused_by_line(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="'X' at position 2 of 'aX' is not in the vocabulary") as refused:
        Translator(bundle).translate(["a", "b", "aX"])
    assert refused.value.line == 3


def test_a_byte_order_mark_before_a_text_is_not_translated(bundle: Bundle) -> None:
    translator = Translator(bundle)
    assert translator("\ufeffabc") == translator("abc")
    assert "".join(translator.stream("\ufeffabc")) == "".join(translator.stream("abc"))


def test_text_of_every_road_is_put_into_the_form_of_training() -> None:
    """`é` in two characters, and a tab, as files have them: the vocabulary has neither."""
    tokenizer = Tokenizer.characters("abcdéè {}")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=25, dropout=0.0,
    )  # fmt: skip
    plain = Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=2, extra_length=12)))
    composed, decomposed = "abé è {é}", "abe\u0301\te\u0300 {e\u0301}"
    for translator, same in (
        (plain, plain),
        (
            plain.using(copy_spans=["placeholders"], glossary={"è": "dé"}),
            plain.using(copy_spans=["placeholders"], glossary={"e\u0300": "de\u0301"}),
        ),
    ):
        assert same(decomposed) == translator(composed)
        assert "".join(same.stream(decomposed)) == "".join(translator.stream(composed))
        (expected,) = translator.translations([composed], prefix="é", align="words")
        (result,) = same.translations([decomposed], prefix="e\u0301", align="words")
        assert replace(result, source=composed) == expected
        assert result.source == decomposed
        assert [one.text for one in same.alternatives(decomposed, after="e\u0301", count=2)] == [
            one.text for one in translator.alternatives(composed, after="é", count=2)
        ]
    (expected_score,) = plain.score([(composed, composed)])
    (scored,) = plain.score([(decomposed, decomposed)])
    assert scored.log_probabilities == expected_score.log_probabilities
    assert "{é}" in plain.using(copy_spans=["placeholders"])(decomposed)


def test_a_bundle_of_another_form_keeps_it(bundle: Bundle) -> None:
    assert Translator(replace(bundle, normalization=Normalization(unicode="NFKC")))("ª") is not None
    with pytest.raises(InputError, match="'ª' at position 1"):
        Translator(bundle)("ª")


def test_what_training_copied_is_copied(bundle: Bundle) -> None:
    habits = CopyStatistics.from_pairs([("go to 7", "va a 7")] * 20)
    (result,) = Translator(replace(bundle, copy_statistics=habits)).translations([" 👍 "])
    assert (result.text, result.flags) == ("👍", ("copied",))
    with pytest.raises(InputError, match="not in the vocabulary"):
        Translator(bundle)("👍")


def test_a_prefix_that_cannot_be_kept_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="the prefix has 17 tokens, but a translation has at most 17, its end"):
        list(Translator(bundle).translations(["a"], prefix="a" * 17))
    (kept,) = Translator(bundle).translations(["a"], prefix="a" * 16)
    assert kept.text.startswith("a" * 16)
    words = Tokenizer(word_backend(["a dog sees a cat ."] * 5, vocab_size=40))
    model = Transformer(replace(bundle.model.config, vocab_size=len(words), pad_id=words.pad_id)).eval()
    with pytest.raises(InputError, match="cannot spell all of the prefix 'a okapi'"):
        list(Translator(Bundle(model, words, words, DecodeConfig(beam=1))).translations(["a dog"], prefix="a okapi"))


@pytest.mark.parametrize("settings", [{}, {"beam": 3, "nbest": 2}, {"glossary": {"high": "fed"}}])
def test_a_text_in_capitals_is_translated_in_small_letters(spaced: Bundle, settings: dict[str, Any]) -> None:
    bundle = replace(spaced, case_statistics=CaseStatistics.from_pairs([("abc de", ""), ("fgh", "")]))
    translator = Translator(bundle).using(**settings)
    (small,) = translator.translations(["bade high"], align="words")
    (result,) = translator.translations(["BADE HIGH"], align="words")
    assert small.text
    assert small.alignment is not None
    assert result.alignment is not None
    assert (result.text, result.log_probability) == (small.text.upper(), small.log_probability)
    assert [one.text for one in result.alternatives] == [one.text.upper() for one in small.alternatives]
    assert (result.alignment.source, result.alignment.links) == (("BADE", "HIGH"), small.alignment.links)
    assert result.flags == ("recased", *small.flags)
    assert "".join(translator.stream("BADE HIGH")) == "".join(translator.stream("bade high")).upper()


def test_a_text_in_capitals_stays_where_the_vocabulary_has_no_small_letters(bundle: Bundle) -> None:
    tokenizer = Tokenizer.characters("ABCDEFGHIJ")
    capitals = replace(bundle, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    codes = replace(capitals, case_statistics=CaseStatistics(sources=9))
    assert Translator(codes)("BADHEAD") == Translator(capitals)("BADHEAD")


def test_a_text_in_capitals_stays_where_sources_are_or_it_is_switched_off(spaced: Bundle) -> None:
    bundle = replace(spaced, case_statistics=CaseStatistics.from_pairs([("abc de", ""), ("ABC DE", "")]))
    for translator in (
        Translator(spaced),
        Translator(bundle),
        Translator(replace(bundle, case_statistics=CaseStatistics(sources=9))).using(recase=False),
    ):
        with pytest.raises(InputError, match="'B' at position 1 of 'BADE' is not in the vocabulary"):
            translator("BADE")
