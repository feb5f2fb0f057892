"""Long texts, and where they are cut."""

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.nn import Transformer
from allyouneed.text.spans import CopyStatistics
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator


def test_a_long_text_is_split_translated_and_joined() -> None:
    tokenizer = Tokenizer.characters("abcdefghij. ABC")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.0,
    )  # fmt: skip
    translator = Translator(
        Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=2, extra_length=3))
    )
    (result,) = translator.translations(["Abc de. Bcd ef gh. Cab."], align="words")
    assert "split" in result.flags
    assert result.text == " ".join(translator.translate(["Abc de.", "Bcd ef gh.", "Cab."]))


def reading(longest_source: int, *, max_length: int = 30) -> Translator:
    """Make an untrained translator that has learned to read as many tokens, and reads up to `max_length`."""
    return untrained("abcdefghij. ,ABCJ", longest_source=longest_source, max_length=max_length)


def untrained(
    alphabet: str,
    *,
    longest_source: int,
    max_length: int = 30,
    languages: tuple[str, str] = ("", ""),
    signs: str = "",
) -> Translator:
    torch.manual_seed(1)
    tokenizer = Tokenizer.characters(alphabet)
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=max_length, dropout=0.0,
    )  # fmt: skip
    decode = DecodeConfig(beam=2, extra_length=9)
    bundle = Bundle(
        Transformer(config).eval(),
        tokenizer,
        tokenizer,
        decode,
        longest_source=longest_source,
        languages=languages,
        copy_statistics=CopyStatistics(signs=signs),
    )
    return Translator(bundle)


def test_pieces_are_cut_and_joined_by_the_languages_of_the_bundle() -> None:
    alphabet = "abcdefghimM. AB3"
    text = "Ab am 3. Mai. Bc de."
    english, german, chinese = (
        untrained(alphabet, longest_source=17, languages=languages)
        for languages in (("en", "it"), ("de", "it"), ("de", "zh"))
    )
    assert [one.text for one in english.split([text]).segments] == ["Ab am 3.", "Mai.", "Bc de."]
    assert [one.text for one in german.split([text]).segments] == ["Ab am 3. Mai.", "Bc de."]
    first, second = german.translate(["Ab am 3. Mai.", "Bc de."])
    assert german(text) == f"{first} {second}"
    assert chinese(text) == first + second
    streamed = ("".join(chinese.stream(part)) for part in ("Ab am 3. Mai.", "Bc de."))
    assert "".join(chinese.stream(text)) == "".join(streamed)


def test_one_long_sentence_is_cut_at_the_length_the_model_has_learned() -> None:
    translator = reading(12)
    (result,) = translator.translations(["abc de, fgh ij ab cd ef"])
    assert result.text == " ".join(translator.translate(["abc de,", "fgh ij ab", "cd ef"]))
    assert "split" in result.flags
    assert "long" not in result.flags
    (result,) = translator.translations(["abcdefghijabcdef"])
    assert "long" in result.flags
    assert "split" not in result.flags


def test_no_cut_goes_through_a_term() -> None:
    translator = reading(12, max_length=40).using(glossary={"Abc. Bab ij": "jjj"})
    for text in ("gg hh Abc. Bab ij. Cab gg.", "ab cd ef gh Abc. Bab ij", "Abc. Bab ij"):
        (result,) = translator.translations([text])
        assert "jjj" in result.text.lower()


def test_a_prefix_begins_the_first_piece_alone() -> None:
    translator = reading(12).using(beam=1)
    (result,) = translator.translations(["Abc de. Bcd ef gh."], prefix="j, j")
    (first,) = translator.translations(["Abc de."], prefix="j, j")
    assert first.text.startswith("j, j")
    assert result.text == f"{first.text} {translator('Bcd ef gh.')}"
    (result,) = translator.translations(["Abc de. Bcd ef gh."], prefix="j, j", alternatives=2)
    assert result.text.startswith("j, j")


@pytest.mark.parametrize(
    ("signs", "text", "is_wrong"), [(".", "a «b» c", True), (".«»", "a «b» c", False), (".", "a b c", False)]
)
def test_a_run_with_signs_that_the_training_sources_lack_is_copied_or_flagged(
    signs: str, text: str, is_wrong: bool
) -> None:
    translator = untrained("abc «».", longest_source=20, signs=signs)
    (result,) = translator.translations([text])
    assert "«b»" not in result.text
    assert ("wrong_spans" in result.flags) == is_wrong
