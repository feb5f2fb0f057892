"""A text on its way through sentences, whoever asks for its translation."""

from dataclasses import replace

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from untrained import without_copies

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,?!{}%@:/-"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    """Make an untrained bundle, from English into Italian."""
    torch.manual_seed(3)
    tokenizer = Tokenizer.characters(LETTERS)
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=16, d_ff=16, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=80, dropout=0.0,
    )  # fmt: skip
    decode = DecodeConfig(beam=2, extra_length=6, copy_untranslatable=False, retry_repetition=False, recase=False)
    return Bundle(Transformer(config).eval(), tokenizer, tokenizer, decode, languages=("en", "it"))


TEXT = "  Go to the house. He is big!\n\n\tWhere is he?  Come in.\n"
SENTENCES = ["Go to the house.", "He is big!", "Where is he?", "Come in."]
GAPS = ["  ", " ", "\n\n\t", "  ", "\n"]


def between(parts: list[str]) -> str:
    return "".join(one for pair in zip(GAPS, [*parts, ""], strict=True) for one in pair)


def test_each_sentence_and_line_is_translated_by_itself_and_what_is_between_them_stays(bundle: Bundle) -> None:
    translator = Translator(bundle)
    parts = translator.translate(SENTENCES)
    (result,) = translator.translations([TEXT], align="words")
    assert result.text == between(parts)
    assert "split" not in result.flags
    assert result.alignment is not None
    assert "".join(result.alignment.source) == "".join(TEXT.split())
    singles = list(translator.translations(SENTENCES))
    assert result.tokens == sum(one.tokens for one in singles)
    assert result.log_probability == pytest.approx(sum(one.log_probability for one in singles), abs=1e-4)


def test_what_is_streamed_is_the_greedy_translation_of_every_sentence(bundle: Bundle) -> None:
    greedy = Translator(bundle).using(beam=1)
    assert "".join(greedy.stream(TEXT)) == greedy(TEXT)
    assert "".join(greedy.stream(" \n")) == " \n"


def test_the_nth_alternative_joins_the_nth_of_each_sentence(bundle: Bundle) -> None:
    translator = Translator(bundle).using(nbest=2)
    seconds = [one.alternatives[0].text for one in translator.translations(SENTENCES)]
    (result,) = translator.translations([TEXT])
    assert [one.text for one in result.alternatives] == [between(seconds)]


def test_a_prefix_is_that_of_the_first_sentence(bundle: Bundle) -> None:
    translator = Translator(bundle)
    results = list(translator.translations(["Go in. He is.", "Come in."], prefix=["la ", ""]))
    first = next(translator.translations(["Go in."], prefix="la ")).text
    assert [one.text for one in results] == [f"{first} {translator('He is.')}", translator("Come in.")]


def test_a_sentence_that_cannot_be_read_refuses_its_text_once_and_by_its_line(bundle: Bundle) -> None:
    texts = ["Go in.", "He is. Ω. Ω and Ω. Come in.", "Come in."]
    translator = Translator(bundle)
    with pytest.raises(InputError) as refused:
        translator.translate(texts)
    assert refused.value.line == 2
    errors: list[InputError] = []
    counts: list[int] = []
    results = list(translator.translations(texts, first_line=11, on_refused=errors.append, on_progress=counts.append))
    assert [error.line for error in errors] == [12]
    assert [one.text for one in results] == [translator(texts[0]), "", translator(texts[2])]
    assert sum(counts) == 3


def test_a_text_of_which_a_sentence_was_cancelled_is_cancelled(bundle: Bundle) -> None:
    results = list(Translator(bundle).translations(["Go in. He is.", "Come in."], is_cancelled=lambda i: i == 0))
    assert (results[0].text, results[0].flags) == ("", ("cancelled",))
    assert results[1].text == Translator(bundle)("Come in.")


def test_no_sentence_ends_inside_a_term_or_an_address(bundle: Bundle) -> None:
    translator = Translator(bundle).using(glossary={"Go in. He": "abc"})
    assert len(translator.split(["Go in. He is."]).segments) == 1
    assert len(translator.split(["Go to a@b.it. He is."]).segments) == 2


def test_a_model_of_strings_splits_none(bundle: Bundle) -> None:
    strings = Translator(replace(bundle, languages=("", "")))
    assert not strings.splits_sentences
    assert [one.text for one in strings.split(["Go in. He is."]).segments] == ["Go in. He is."]
    whole = Translator(bundle).split(["Go in. He is.", " "], split_sentences=False)
    assert [one.text for one in whole.segments] == ["Go in. He is."]


SPANS = ["{name}", "%s", "a@b.it", "http://a.b/c"]


@pytest.mark.parametrize("span", SPANS)
def test_what_nobody_has_named_is_copied_unless_the_training_pairs_speak_against_it(bundle: Bundle, span: str) -> None:
    text = f"Go to {span} now."
    (result,) = Translator(bundle).translations([text])
    assert span in result.text
    assert "".join(Translator(bundle).using(beam=1).stream(text)) == Translator(bundle).using(beam=1)(text)
    assert span not in Translator(without_copies(bundle))(text)


def test_what_cannot_be_copied_is_flagged_and_refused_only_where_it_was_asked_for(bundle: Bundle) -> None:
    short = Translator(bundle).using(max_length=3)
    (result,) = short.translations(["Go to http://a.b/c now."])
    assert "wrong_spans" in result.flags
    with pytest.raises(InputError, match="within 3 tokens"):
        short.using(copy_spans=["urls"])("Go to http://a.b/c now.")
    letters = Tokenizer.characters(LETTERS.replace("{", "").replace("}", "~^"))
    other = replace(bundle, target_tokenizer=letters)
    (result,) = Translator(other).translations(["Go to {name} now."])
    assert "wrong_spans" in result.flags
    with pytest.raises(InputError, match="cannot spell"):
        Translator(other).using(copy_spans=["placeholders"])("Go to {name} now.")
