"""Copied spans and glossary terms in every output."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.decode import length_penalty
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.text.backends import bpe_backend, codes_backend, word_backend
from allyouneed.text.glossary import Glossary
from allyouneed.text.spans import CopyCount, CopyStatistics, numbers_are_lost
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from allyouneed.translator.constraints import (
    ConstraintBuilder,
    codes_differ,
    copied_kinds,
    extra_spans,
    spans_differ,
)
from untrained import loud, without_copies
from vocabularies import CODES


def test_a_glossary_and_kept_spans_hold_in_every_output(bundle: Bundle) -> None:
    roomy = replace(bundle.model.config, max_length=40)
    bundle = replace(bundle, model=Transformer(roomy).eval())
    translator = Translator(bundle).using(glossary={"abc": ["ij", "ji"], "d": "fff"}, nbest=2)
    texts = ["abc", "e", "d", "abcd", "b"]
    for translation in translator.translations(texts):
        for result in (translation, *translation.alternatives):
            assert translation.source != "abc" or "ij" in result.text or "ji" in result.text
            assert translation.source != "d" or "fff" in result.text
    free = Translator(bundle)
    assert translator(texts[1]) == free(texts[1])
    with pytest.raises(InputError, match="17 tokens"):
        Translator(replace(bundle, model=Transformer(replace(roomy, max_length=17)).eval())).using(
            glossary={"d": "abcdefghij" * 2}
        )("d")


def test_a_phrase_is_spelled_as_the_vocabulary_writes_it_or_refused() -> None:
    codes = Tokenizer(codes_backend(CODES, ["dog runs"], all_symbols=False))
    builder = ConstraintBuilder(codes, Glossary({"cat": "dog  runs"}), ())
    (phrase,) = builder.build("a cat")
    assert {codes.decode(spelling) for spelling in phrase.spellings} == {"dog runs"}
    invisible = Tokenizer(word_backend(["dog runs"], vocab_size=20))
    with pytest.raises(InputError, match="spell it"):
        ConstraintBuilder(invisible, Glossary({"cat": "zebra"}), ()).build("a cat")


def test_a_span_that_the_vocabulary_cannot_spell_is_not_required_and_its_translation_differs() -> None:
    builder = ConstraintBuilder(Tokenizer.characters("abc %s"), Glossary({}), ("placeholders",), is_required=False)
    assert len(builder.build("a %s b")) == 1
    assert builder.build("a ##b.c## b") == []
    assert builder.orders("%s ##b.c## {}") == []
    assert builder.spans_differ("a ##b.c## b", "a b b")


def percents() -> Bundle:
    """Make a model that says only "%" if it may."""
    tokenizer = Tokenizer.characters("abcdefgh<>/%sd ")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=12, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0,
    )  # fmt: skip
    bundle = Bundle(
        Transformer(config).eval(),
        tokenizer,
        tokenizer,
        DecodeConfig(beam=2, extra_length=9, copy_untranslatable=False, retry_repetition=False),
    )
    loud(bundle, "%")
    return bundle


@pytest.mark.parametrize("text", ["ab", "a%%b", "a%%b%%", "%s a", "%s a %d", "%d %s"])
def test_spans_that_the_source_does_not_have_do_not_come_out(text: str) -> None:
    bundle = percents()
    free, bound = Translator(without_copies(bundle)), Translator(bundle).using(copy_spans=["placeholders"])
    assert spans_differ(text, free(text), ["placeholders"])
    (result,) = bound.translations([text])
    assert not spans_differ(text, result.text, ["placeholders"])
    assert "wrong_spans" not in result.flags


@pytest.mark.parametrize("text", ["%s a", "%s a %d", "ab %s b"])
def test_every_further_translation_is_searched_again_too(text: str) -> None:
    bound = Translator(percents()).using(copy_spans=["placeholders"], beam=4, extra_length=20)
    (several,) = bound.using(nbest=4).translations([text])
    (continued,) = bound.translations([text], alternatives=3)
    for best, count in ((several, 4), (continued, 3)):
        every = [best, *best.alternatives]
        assert len({one.text for one in every}) == count
        assert [spans_differ(text, one.text, ["placeholders"]) for one in every] == [False] * count
    scores = [one.log_probability / length_penalty(one.tokens, alpha=0.6) for one in (several, *several.alternatives)]
    assert scores == sorted(scores, reverse=True)


def test_where_the_spans_are_wrong_all_the_same_the_translation_says_so() -> None:
    """A prefix that begins a placeholder leaves no way out: whatever follows, one too many comes out."""
    bound = Translator(percents()).using(copy_spans=["placeholders"], nbest=2)
    (result,) = bound.translations(["ab"], prefix="%", alternatives=1)
    assert "%%" in result.text
    assert "wrong_spans" in result.flags


@given(
    st.lists(st.sampled_from(["%s", "%d", "<b>a</b>", "ab", "%%", "<d>"]), min_size=1, max_size=4), st.integers(0, 99)
)
@settings(deadline=None, max_examples=20)
def test_every_translation_has_the_spans_of_its_source_or_a_flag(words: list[str], seed: int) -> None:
    torch.manual_seed(seed)
    kinds = ["placeholders", "tags"]
    bundle = percents()
    bundle = replace(bundle, model=Transformer(bundle.model.config).eval())
    for result in Translator(bundle).using(copy_spans=kinds, nbest=2, extra_length=20).translations([" ".join(words)]):
        for item in (result, *result.alternatives):
            assert spans_differ(result.source, item.text, kinds) == ("wrong_spans" in item.flags)


def test_arguments_without_a_number_keep_their_order() -> None:
    """Untrained models, of which many would rather say %d first."""
    free, flagged = 0, 0
    for seed in range(12):
        torch.manual_seed(seed)
        bundle = percents()
        bundle = replace(bundle, model=Transformer(bundle.model.config).eval())
        (result,) = Translator(bundle).using(copy_spans=["placeholders"]).translations(["%s a %d"])
        flagged += "wrong_spans" in result.flags
        free += spans_differ(
            "%s a %d",
            Translator(without_copies(bundle)).using(glossary={"%s": "%s", "%d": "%d"})("%s a %d"),
            ["placeholders"],
        )
    assert free > 0
    assert flagged == 0


def test_a_term_around_a_kept_span_is_the_terms_and_one_inside_is_the_spans(bundle: Bundle) -> None:
    tokenizer = Tokenizer(bpe_backend(["any text 12"], vocab_size=270))
    terms = Glossary({"Windows 11": "WINDOWS 11", "covid-19": "Corona", "19": "neunzehn", "7 dogs": "7 Hunde"})
    builder = ConstraintBuilder(tokenizer, terms, ["numbers"])
    assert builder.required_texts("Windows 11 and covid-19, 19 and 11") == [
        ("19",), ("11",), ("WINDOWS 11",), ("Corona",),
    ]  # fmt: skip
    assert not builder.spans_differ("Windows 11 and covid-19", "WINDOWS 11 und Corona")
    assert builder.spans_differ("Windows 11 and 12", "WINDOWS 11 und")
    assert builder.spans_differ("covid-19", "Corona 20")
    files = ConstraintBuilder(
        tokenizer, Glossary({"%s files": "%s Dateien", "3 dogs 5": "x"}), ["placeholders", "numbers"]
    )
    assert files.required_texts("%s files 2-3 dogs 5") == [("%s",), ("2-3",), ("5",)]
    assert not files.spans_differ("now %s files", "jetzt %s Dateien")


def test_phrases_that_cannot_fit_are_refused_without_a_search(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beam would be as wide as they are long."""
    monkeypatch.setattr("allyouneed.translator.generation.search", pytest.fail)
    with pytest.raises(InputError, match="17 tokens"):
        Translator(bundle).using(glossary={"d": "abcdefghij" * 100})("d")


@pytest.mark.parametrize(
    ("source", "target", "differ"),
    [
        ("%s has %d dogs", "%s ha %d cani", False),
        ("%s has %d dogs", "%d cani di %s", True),  # by their place: the order has a meaning
        ("%1$s has %2$d dogs", "%2$d cani di %1$s", False),
        ("%(a)s has %(b)d dogs", "%(b)d cani di %(a)s", False),
        ("{} has {:d}", "{:d}: {}", True),
        ("{a} has {b}", "{b}: {a}", False),
        ("%1 of %2", "%2: %1", False),  # Qt's are numbered
        ("100 %% of %s", "%s: 100 %%", False),
        ("%name% of %#@files@", "%#@files@: %name%", False),
        ("%<PRIu64> of %s", "%s: %<PRIu64>", True),
        ("%s", "%s %s", True),
        ("%s %s", "%s", True),
        ("%s", "%d", True),
        ("a dog", "%s un cane", True),
        ("%s dogs", "%s % cani", True),  # C reads "% c" as an argument
        ("%s dogs, 5 %", "5 %, %s cani", False),
        ("5 per cent", "5 %", False),
        ("{a} dogs", "{a} } cani", True),
        ("<b>a</b> <i>dog</i>", "<i>cane</i> <b>un</b>", False),
        ("<b>a <i>dog</i></b>", "<b>un <i>cane</b></i>", True),
        ("<b>a</b> dog", "</b>un<b> cane", True),
        ("a<br>b<br/><hr>", "<hr>a<br/>b<br>", False),
        ("a</b> dog <i>", "un<i> cane </b>", True),  # not paired in the source: the order stays
        ("a</b> dog <i>", "un</b> cane <i>", False),
    ],
)
def test_spans_agree_if_each_comes_as_often_and_in_an_order_that_works(source: str, target: str, differ: bool) -> None:
    assert spans_differ(source, target, ("tags", "placeholders")) == differ


def test_only_the_kinds_that_are_kept_count_and_what_is_brought_along_may_come_besides() -> None:
    assert not spans_differ("7 dogs", "8 %s", ())
    assert spans_differ("7 dogs", "8 cani", ("numbers",))
    assert spans_differ("a player", "un MP3", ("numbers",))
    assert not spans_differ("a player", "un MP3", ("numbers",), also=["lettore MP3"])


def test_what_is_too_much_is_told_by_its_place() -> None:
    assert extra_spans("%s a", "%s b %s %d", ("placeholders",)) == [(5, 7), (8, 10)]


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("1,234.50 euros", "1.234,50 euro", False),
        ("1,234.50 euros", "1 234,50 euro", False),
        ("1,234.50 euros", "1234,50 euro", False),
        ("12/31/2020 at 10:30", "31.12.2020, 10.30", False),
        ("2 of 2 dogs", "2 cani su 2", False),
        ("in 1999", "\u0641\u064a \u0661\u0669\u0669\u0669", False),
        ("two dogs", "2 cani", False),
        ("see https://a.b/7 and %2$s", "vedi", False),  # of other spans
        ("2 dogs", "due cani", True),
        ("2 of 2 dogs", "2 cani", True),
        ("in 1999", "nel 1998", True),
        ("1,234.50 euros", "1.234 euro", True),
        ("v2 and MP3", "v2 e MP", True),
    ],
)
def test_a_number_comes_back_however_its_parts_are_written(source: str, target: str, lost: bool) -> None:
    assert numbers_are_lost(source, target) == lost


@pytest.mark.parametrize(
    "source",
    [
        "$1 files", "##name_x## [left]", "<<name>> of ^1", "a|b", "~x@ y = z", "/etc/passwd is here", "see .bashrc now",
        "--help me", "call open() or a.b()", "press Ctrl+C", "«Name» and ‹Name›", "!important", "page 5",
        "%%name%% is in std::list", "//name//",
    ],
)  # fmt: skip
def test_codes_that_are_not_known_come_back(source: str) -> None:
    assert not codes_differ(source, f"E {source}, va bene.")
    assert codes_differ(source, "".join(one for one in source if one.isalpha()))
    assert codes_differ(source, "E")


@pytest.mark.parametrize(
    "source",
    ["-Where is he?", "...and then, and/or (in Rome): why?!", "It is \"big\" – isn't it; or 'so'", "«La casa è qui»"],
)
def test_signs_of_sentences_are_no_codes(source: str) -> None:
    assert not codes_differ(source, "E")


def test_the_kinds_that_are_copied_are_those_that_the_training_pairs_do_not_speak_against() -> None:
    assert copied_kinds(CopyStatistics()) == ("urls", "emails", "placeholders", "emoji")
    assert copied_kinds(CopyStatistics(inside={"placeholders": CopyCount(20, 10)})) == ("urls", "emails", "emoji")
