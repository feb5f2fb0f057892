"""What is done with a text before it is translated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allyouneed.apps.cli.document import DocumentSettings, translate_file
from allyouneed.apps.documents import read_document
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.decode import step
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.text.backends import word_backend
from allyouneed.text.letter_case import CaseStatistics
from allyouneed.text.normalize import Normalization
from allyouneed.text.spans import CopyStatistics
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator, generation, translation
from allyouneed.translator.text_splitter import MOST_CHARACTERS
from conftest import SMALL, made_once
from exact_tasks import make_pairs, train


def test_a_text_that_is_too_long_is_refused_before_any_is_translated(bundle: Bundle) -> None:
    counts: list[int] = []
    with pytest.raises(InputError, match="18 tokens") as refused:
        Translator(bundle).translate(["a", "a" * 16], on_progress=counts.append)
    assert refused.value.line == 2
    assert counts == []


def test_a_text_longer_than_can_be_split_is_refused_before_any_work(bundle: Bundle) -> None:
    translator = Translator(bundle)
    long = "a b " * (MOST_CHARACTERS // 4) + "a"
    with pytest.raises(InputError, match=f"{len(long):,}") as refused:
        translator.translate(["a", long])
    assert refused.value.line == 2
    with pytest.raises(InputError):
        list(translator.stream(long))
    errors: list[InputError] = []
    texts = [one.text for one in translator.translations(["a", long, "b"], on_refused=errors.append)]
    assert texts == [translator("a"), "", translator("b")]
    assert [error.line for error in errors] == [2]


def test_a_stranger_is_refused_by_line(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="'X' .*2 .*'aX'") as refused:
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
    assert (result.text, result.flags) == (" 👍 ", ("copied",))
    with pytest.raises(InputError, match="vocabulary"):
        Translator(bundle)("👍")


def test_a_prefix_that_cannot_be_kept_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="17 tokens, .*17"):
        list(Translator(bundle).translations(["a"], prefix="a" * 17))
    (kept,) = Translator(bundle).translations(["a"], prefix="a" * 16)
    assert kept.text.startswith("a" * 16)
    words = Tokenizer(word_backend(["a dog sees a cat ."] * 5, vocab_size=40))
    model = Transformer(replace(bundle.model.config, vocab_size=len(words), pad_id=words.pad_id)).eval()
    with pytest.raises(InputError, match="'a okapi'"):
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
        with pytest.raises(InputError, match="'B' .*1 .*'BADE'"):
            translator("BADE")


OFF: dict[str, Any] = {"copy_untranslatable": False, "recase": False, "retry_repetition": False}
TEXTS = [source for source, _ in make_pairs(150, seed=3)] + ["ABCDEF", "HHAEBB", "-4711", "bcdfghbcd"]


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return a model that has learned exact tasks, one against each of the default helps."""
    return Bundle.load(made_once(tmp_path_factory, "exact", train))


def test_segments_of_several_calls_can_share_a_batch() -> None:
    tokenizer = Tokenizer.characters("abcdefghij ")
    model = Transformer(replace(SMALL, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)).eval()
    translator = Translator(Bundle(model, tokenizer, tokenizer, DecodeConfig(beam=2)))
    ours, yours = ["abc", "", "j" * 9 + " " + "a" * 9], ["dig", "abc"]
    first, second = translator.split(ours), translator.split(yours)
    assert len(first.segments) == 3  # none for the empty text, two for the long one
    translations = translator.translate_segments([*first.segments, *second.segments])
    for texts, split, some in ((ours, first, translations[:3]), (yours, second, translations[3:])):
        assert [one.text for one in translator.join(split, some)] == translator.translate(texts)


def without_statistics(bundle: Bundle) -> Bundle:
    """As if the pairs had not shown that targets repeat, and that capitals have a meaning."""
    return replace(bundle, longest_repetition=0, case_statistics=replace(bundle.case_statistics, contradicted=0))


@pytest.mark.slow
def test_no_answer_is_touched(exact: Bundle) -> None:
    assert (exact.longest_repetition, exact.case_statistics.contradicted) == (9, 16)
    pairs = make_pairs(150, seed=4)
    translator = Translator(exact)
    right = [translator(source) == target for source, target in pairs]
    assert sum(right) > 0.9 * len(pairs)
    for known in (exact, without_statistics(exact)):
        assert Translator(known).translate(TEXTS) == translator.using(**OFF).translate(TEXTS)
        assert "".join(Translator(known).stream("-4711")) == translator.using(**OFF)("-4711")


def test_each_of_them_would_change_the_answers_of_this_model_if_it_were_never_sure(
    exact: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (step, translation):
        monkeypatch.setattr(module, "SURE", 1.0)
    unsure = Translator(without_statistics(exact))
    bare = unsure.using(**OFF)
    assert unsure("-4711") == "-4711" != bare("-4711")
    assert unsure("ABCDEF") != bare("ABCDEF")
    assert unsure("bcdfghbcd") == bare("bcdfghbcd")  # the model does not find any other output nearly as likely
    monkeypatch.setattr(generation, "NEARLY", 1e9)
    assert unsure("bcdfghbcd") != bare("bcdfghbcd")
    assert Translator(exact)("bcdfghbcd") == bare("bcdfghbcd")  # the training targets repeat as much


def test_documents_keep_what_the_pairs_changed(exact: Bundle, tmp_path: Path) -> None:
    texts = [source for source in TEXTS if "%" in source]
    assert len({text[:2] for text in texts}) == 2
    document = read_document(json.dumps(texts).encode(), "json")
    output = tmp_path / "out.json"
    translate_file(document, Translator(exact), output, DocumentSettings(), skip_refused=False)
    assert json.loads(output.read_text()) == Translator(exact).using(**OFF).translate(texts)
