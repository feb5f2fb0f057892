import math
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.corpus.normalize import Normalization
from allyouneed.decode import length_penalty
from allyouneed.errors import ConfigError, InputError
from allyouneed.inference import EagerEngine
from allyouneed.nn import Transformer
from allyouneed.text.spans import CopyStatistics
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from allyouneed.translator.agreement import spans_differ

TEXTS = ["abc", "", "j", "ijabcdefg", "ab", "abcdefghij", ""]


@pytest.mark.parametrize("beam", [1, 3])
def test_many_are_translated_as_one_by_one_and_in_their_order(bundle: Bundle, beam: int) -> None:
    translator = Translator(bundle, decode=replace(bundle.decode, beam=beam))
    assert translator.translate(TEXTS) == [translator(text) for text in TEXTS]


@pytest.mark.parametrize(
    "setting",
    [
        {"sample": True, "nbest": 3},
        {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
        {"beam": 4, "beam_groups": 2, "nbest": 3},
        {"min_ratio": 1.0, "copy_untranslatable": False, "retry_repetition": False},
        {"glossary": {"ab": "j"}},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_a_translation_does_not_depend_on_its_neighbours(bundle: Bundle, setting: dict[str, Any]) -> None:
    translator = Translator(bundle).using(**{"batch_size": 8, **setting})
    texts = TEXTS * 3

    def seen(texts: list[str]) -> list[list[str]]:
        return [[one.text for one in (best, *best.alternatives)] for best in translator.translations(texts)]

    assert seen(texts) == [alone for text in texts for alone in seen([text])]
    assert seen(texts[::-1]) == seen(texts)[::-1]


def test_a_sampled_stream_is_the_sampled_translation(bundle: Bundle) -> None:
    translator = Translator(bundle).using(sample=True, copy_untranslatable=False, retry_repetition=False)
    assert ["".join(translator.stream(text)) for text in TEXTS] == translator.translate(TEXTS)
    assert translator.using(seed=2).translate(TEXTS) != translator.translate(TEXTS)


def test_a_few_sentences_are_computed_by_one_thread(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for its share of a small product keeps a core busy, and others waiting."""
    translator = Translator(bundle).using(batch_size=64)
    torch.set_num_threads(2)
    seen: list[int] = []

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            seen.append(torch.get_num_threads())
            return work(*arguments)

        return noted

    for kind, name in ((Transformer, "encode"), (EagerEngine, "start"), (EagerEngine, "log_probabilities")):
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    translator = translator.using()
    list(translator.translations(["abc"], align="words"))
    "".join(translator.stream("abc"))
    translator.alternatives("abc", after="d", count=2)
    list(translator.score([("abc", "de")]))
    assert len(seen) > 12
    assert set(seen) == {1}
    translator.translate(["abc"] * 40)
    assert 2 in seen
    assert torch.get_num_threads() == 2


def test_two_threads_find_what_one_finds_and_are_left_as_they_were(bundle: Bundle) -> None:
    texts = TEXTS * 5
    for setting in ({}, {"beam_groups": 2}, {"no_repeat_ngram_size": 2}, {"sample": True}):
        translator = Translator(bundle).using(**setting)
        one = list(translator.translations(texts))
        torch.set_num_threads(2)
        assert list(translator.translations(texts)) == one
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
    torch.set_num_threads(2)
    with pytest.raises(InputError, match="says all it must within 17 tokens"):
        Translator(bundle).using(glossary={"j": "abcdefghij" * 2}).translate(texts)


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_compiled_translates_alike(bundle: Bundle, beam: int) -> None:
    config = replace(bundle.decode, beam=beam)
    alike = Translator(bundle, decode=config, compiled=True)
    assert [alike(text) for text in TEXTS] == Translator(bundle, decode=config).translate(TEXTS)


def test_an_empty_text_stays_empty(bundle: Bundle) -> None:
    assert Translator(bundle)("") == ""
    assert Translator(bundle).translate([]) == []


def test_each_batch_says_how_many_it_finished(bundle: Bundle) -> None:
    counts: list[int] = []
    Translator(bundle).translate(TEXTS, on_progress=counts.append)
    assert counts == [3, 2]


def test_an_output_has_at_most_so_many_tokens_more_than_its_input(bundle: Bundle) -> None:
    torch.nn.init.zeros_(bundle.model.source_embedding.table)  # every word is as likely, so the end may never come
    for extra in (1, 4):
        translator = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=extra))
        (result,) = translator.translations(["ab"])
        assert result.tokens <= 2 + extra


@pytest.mark.parametrize("setting", [{"beam": 1}, {"beam": 4}, {"beam": 4, "beam_groups": 2}, {"sample": True}])
def test_the_shortest_and_the_longest_output_count_alike(bundle: Bundle, setting: dict[str, Any]) -> None:
    """Both count the end sign; a model that ends as soon as it may, ends with exactly so many tokens."""
    loud(bundle, "a")
    with torch.no_grad():
        table = bundle.model.projection.get_parameter("table")
        table[bundle.source_tokenizer.eos_id] = 3 * table[bundle.source_tokenizer.encode("a")[1]]
    for lengths in ({"min_length": 5, "max_length": 5}, {"min_ratio": 9.0, "extra_length": 3}):
        (result,) = (
            Translator(bundle)
            .using(**setting, **lengths, copy_untranslatable=False, retry_repetition=False)
            .translations(["bc"])
        )
        assert (result.text, result.tokens, result.flags) == ("aaaa", 5, ())


def test_an_output_never_passes_the_models_longest(bundle: Bundle) -> None:
    translator = Translator(bundle)
    longest = "abcdefghijabcde"  # 15 letters and two signs: exactly max_length
    assert len(bundle.source_tokenizer.encode(longest)) == bundle.model.config.max_length
    translator(longest)


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


def test_it_loads_from_a_folder(bundle: Bundle, saved: Path) -> None:
    translator = Translator.load(str(saved), device="cpu", beam=3)
    assert translator.decode == replace(bundle.decode, beam=3)
    assert translator("abc") == Translator(bundle, decode=replace(bundle.decode, beam=3))("abc")


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_pickled_translator_translates_alike(bundle: Bundle, precision: str) -> None:
    translator = Translator(bundle, precision=precision).using(beam=3, glossary={"ab": "cd"})
    texts = ["abc", "jihg", "dabab"]
    assert pickle.loads(pickle.dumps(translator)).translate(texts) == translator.translate(texts)


def test_a_spawned_process_translates_alike(bundle: Bundle) -> None:
    translator = Translator(bundle)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(translator, ["abc", "jihg"]) == translator.translate(["abc", "jihg"])


def test_a_string_in_place_of_a_list_is_refused_and_not_taken_apart(bundle: Bundle) -> None:
    translator: Any = Translator(bundle)
    for refused in (translator.translate, lambda text: list(translator.translations(text)),
                    lambda text: list(translator.score(text))):  # fmt: skip
        with pytest.raises(InputError, match="must be a list, .* got the one string 'abc'"):
            refused("abc")
    with pytest.raises(InputError, match="a pair must be two strings, .* got 'ab'") as refusal:
        list(translator.score([("a", "b"), "ab"]))
    assert refusal.value.line == 2


def test_what_is_no_text_is_refused_by_line(bundle: Bundle) -> None:
    translator: Any = Translator(bundle)
    with pytest.raises(InputError, match="a text must be a string; got None") as refusal:
        translator.translate(["abc", None])
    assert refusal.value.line == 2
    for refused in (translator, translator.alternatives, lambda text: list(translator.stream(text))):
        with pytest.raises(InputError, match="a text must be a string; got \\['abc'\\]"):
            refused(["abc"])


def test_a_device_that_is_not_there_is_refused(saved: Path) -> None:
    with pytest.raises(ConfigError, match='device must be "auto", "cpu", "cuda" or "mps"'):
        Translator.load(saved, device="toaster")


def loud(bundle: Bundle, letter: str) -> None:
    """A model that says one letter and nothing else, whatever it reads."""
    model = bundle.model
    with torch.no_grad():
        model.target_embedding.table.zero_()
        model.target_embedding.table[bundle.source_tokenizer.encode(letter)[1]] = 1.0
        last = model.get_submodule(f"decoder.layers.{model.config.decoder_layers - 1}.feed_forward_residual.norm")
        last.get_parameter("gain").zero_()
        last.get_parameter("bias").fill_(1.0)


def test_what_goes_round_in_circles_is_decoded_again_and_flagged(bundle: Bundle) -> None:
    loud(bundle, "a")
    guarded = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=12))
    (bare,) = guarded.using(copy_untranslatable=False, retry_repetition=False).translations(["bc"])
    (result,) = guarded.translations(["bc"])
    assert bare.text == "a" * 14
    assert bare.flags == ("unfinished",)
    assert "aaaaaa" not in result.text
    assert "repeats" in result.flags


@given(
    st.lists(st.text("abcdefghij", max_size=15), max_size=6), st.integers(0, 9), st.integers(1, 3), st.integers(1, 9)
)
@settings(deadline=None, max_examples=15)
def test_every_model_ends_within_its_cap_and_answers_every_text(
    texts: list[str], seed: int, beam: int, extra: int
) -> None:
    torch.manual_seed(seed)
    tokenizer = Tokenizer.characters("abcdefghij")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.0,
    )  # fmt: skip
    untrained = Bundle(
        Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=beam, batch_size=3, extra_length=extra)
    )
    result = list(Translator(untrained).translations(texts))
    assert [translation.source for translation in result] == texts
    for text, translation in zip(texts, result, strict=True):
        assert translation.tokens <= min(17, len(text) + extra)
        assert translation.confidence <= 0
        assert bool(text) or translation.text == ""


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
    with pytest.raises(InputError, match="says all it must within 17 tokens"):
        Translator(replace(bundle, model=Transformer(replace(roomy, max_length=17)).eval())).using(
            glossary={"d": "abcdefghij" * 2}
        )("d")


def percents() -> Bundle:
    """A model that says nothing but "%" if it may."""
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
    free, bound = Translator(percents()), Translator(percents()).using(copy_spans=["placeholders"])
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
            "%s a %d", Translator(bundle).using(glossary={"%s": "%s", "%d": "%d"})("%s a %d"), ["placeholders"]
        )
    assert free > 0
    assert flagged == 0


def test_what_training_copied_is_copied(bundle: Bundle) -> None:
    habits = CopyStatistics.from_pairs([("go to 7", "va a 7")] * 20)
    (result,) = Translator(replace(bundle, copy_statistics=habits)).translations([" 👍 "])
    assert (result.text, result.flags) == ("👍", ("copied",))
    with pytest.raises(InputError, match="not in the vocabulary"):
        Translator(bundle)("👍")


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
    """Untrained; it has learned to read as many tokens, and reads up to `max_length`."""
    tokenizer = Tokenizer.characters("abcdefghij. ,ABCJ")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=max_length, dropout=0.0,
    )  # fmt: skip
    decode = DecodeConfig(beam=2, extra_length=9)
    return Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, decode, longest_source=longest_source))


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


def test_a_prefix_that_cannot_be_kept_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="the prefix has 17 tokens, but a translation has at most 17, its end"):
        list(Translator(bundle).translations(["a"], prefix="a" * 17))
    (kept,) = Translator(bundle).translations(["a"], prefix="a" * 16)
    assert kept.text.startswith("a" * 16)
    words = Tokenizer.train_words(["a dog sees a cat ."] * 5, vocab_size=40)
    model = Transformer(replace(bundle.model.config, vocab_size=len(words), pad_id=words.pad_id)).eval()
    with pytest.raises(InputError, match="cannot spell all of the prefix 'a okapi'"):
        list(Translator(Bundle(model, words, words, DecodeConfig(beam=1))).translations(["a dog"], prefix="a okapi"))


def test_a_stream_is_the_greedy_translation_piece_by_piece(bundle: Bundle) -> None:
    translator = Translator(bundle).using(beam=1, copy_untranslatable=False, retry_repetition=False)
    for text in TEXTS:
        assert "".join(translator.stream(text)) == translator(text)


def test_scores_are_those_of_the_search(bundle: Bundle) -> None:
    translator = Translator(bundle)
    result = [translation for translation in translator.translations(["abc", "de", "fghij"]) if not translation.flags]
    for translation, scored in zip(result, translator.score((item.source, item.text) for item in result), strict=True):
        assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-4)
        assert len(scored.pieces) == translation.tokens


def test_scores_give_no_chance_to_what_the_search_never_says() -> None:
    tokenizer = Tokenizer.train_words(["a dog sees a cat ."] * 5, vocab_size=40)
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=1,
        encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.0,
    )  # fmt: skip
    translator = Translator(
        Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=1, max_length=5))
    )
    for may_say_unknown in (False, True):
        searched = translator.using(replace_unknown=may_say_unknown)
        (okapi,) = searched.score([("a dog", "a okapi")])
        assert (okapi.log_probability > -math.inf) == may_say_unknown
        words = ["", "a", "dog", "sees", "cat", ".", *(["okapi"] if may_say_unknown else [])]
        firsts = [scored.log_probabilities[0] for scored in searched.score(("a dog", word) for word in words)]
        assert math.fsum(map(math.exp, firsts)) == pytest.approx(1, abs=1e-4)


def test_alternatives_go_on_differently_after_the_same_beginning(bundle: Bundle) -> None:
    result = Translator(bundle).alternatives("abc", after="de", count=4)
    assert all(translation.text.startswith("de") for translation in result)
    assert len({translation.text[2] for translation in result}) == 4


def spaced(**decode: Any) -> Translator:
    """Untrained, with a vocabulary of ten letters and the blank."""
    tokenizer = Tokenizer.characters("abcdefghij ")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=25, dropout=0.0,
    )  # fmt: skip
    return Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=2, **decode)))


def test_a_glossary_holds_in_alternatives_and_in_streams() -> None:
    translator = spaced(extra_length=9)
    bound = translator.using(glossary={"abc": "ij"})
    for result in bound.alternatives("abc", after="de", count=4):
        assert result.text.startswith("de")
        assert "ij" in result.text.split()
    assert "ij" in "".join(bound.stream("abc")).split()
    assert "".join(bound.stream("de")) == translator.using(beam=1, copy_untranslatable=False, retry_repetition=False)(
        "de"
    )
    with pytest.raises(InputError, match="says all it must within 4 tokens"):
        "".join(translator.using(max_length=4, glossary={"abc": "ijijij"}).stream("abc"))


def test_a_stream_keeps_the_rules(bundle: Bundle) -> None:
    loud(bundle, "a")
    translator = Translator(bundle).using(
        copy_untranslatable=False, retry_repetition=False, no_repeat_ngram_size=2, min_length=3, beam=1
    )
    assert "".join(translator.stream("bc")) == translator("bc")
    assert "aaa" not in translator("bc")


def test_every_text_gets_alternatives_of_its_own(bundle: Bundle) -> None:
    translator = Translator(bundle)
    for text, result in zip(TEXTS, translator.translations(TEXTS, prefix="d", alternatives=3), strict=True):
        alone = translator.alternatives(text, after="d", count=3)
        assert [result.text, *(other.text for other in result.alternatives)] == [item.text for item in alone]
        assert len(result.alternatives) == (2 if text else 0)


def test_tokens_are_aligned_as_well_as_words() -> None:
    translator = spaced(extra_length=3)
    (words,) = translator.translations(["ab cde"], align="words")
    (tokens,) = translator.translations(["ab cde"], align="tokens")
    assert words.alignment is not None
    assert tokens.alignment is not None
    assert words.alignment.source == ("ab", "cde")
    assert words.alignment.target == tuple(words.text.split())
    assert tokens.alignment.source == ("a", "b", "␣", "c", "d", "e")
    assert "".join(tokens.alignment.target).replace("␣", " ") == tokens.text
    assert [j for _, j in tokens.alignment.links] == list(range(len(tokens.text)))
    assert all(0 <= i < 6 for i, _ in tokens.alignment.links)
    for i, j in tokens.alignment.links:  # the words are those of the tokens
        if tokens.text[j] != " ":
            word = len("".join(tokens.alignment.target[: j + 1]).replace("␣", " ").split()) - 1
            assert ((0, 0, 0, 1, 1, 1)[i], word) in words.alignment.links
    with pytest.raises(ConfigError, match='align must be "words" or "tokens"; got True'):
        list(translator.translations(["a"], align=True))  # type: ignore[arg-type]


def test_an_unknown_word_becomes_the_one_it_looked_at() -> None:
    texts = ["a dog sees a cat .", "the dog sleeps ."] * 5
    tokenizer = Tokenizer.train_words(texts, vocab_size=40)
    assert tokenizer.unk_id is not None
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=1,
        encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.0,
    )  # fmt: skip
    model = Transformer(config).eval()
    with torch.no_grad():  # looks at unknown words alone, and says them whenever it may
        model.source_embedding.table.mul_(0.01)
        model.source_embedding.table[tokenizer.unk_id] = 1.0
        last = model.get_submodule("decoder.layers.0.feed_forward_residual.norm")
        last.get_parameter("gain").zero_()
        last.get_parameter("bias").fill_(1.0)
    translator = Translator(
        Bundle(
            model,
            tokenizer,
            tokenizer,
            DecodeConfig(beam=1, max_length=3, copy_untranslatable=False, retry_repetition=False),
        )
    )
    (plain,) = translator.translations(["the okapi sees a dog"])
    assert "<unk>" not in plain.text
    (result,) = translator.using(replace_unknown=True).translations(["the okapi sees a dog"])
    assert "<unk>" not in result.text
    assert set(result.text.split()) <= {"the", "okapi", "sees", "a", "dog"}
    assert len(result.text.split()) == 3


def test_a_penalty_leaves_the_log_probabilities_true(bundle: Bundle) -> None:
    translator = Translator(bundle)
    for setting in ({"repetition_penalty": 1.5}, {"beam": 4, "beam_groups": 2, "nbest": 2}):
        for result in translator.using(**setting).translations(["abc", "defg"]):
            if "unfinished" not in result.flags:
                (scored,) = translator.score([(result.source, result.text)])
                assert scored.log_probability == pytest.approx(result.log_probability, abs=1e-4)


@pytest.mark.parametrize("setting", [{"repetition_penalty": 3.0}, {"beam_groups": 4, "diversity_penalty": 3.0}])
def test_of_several_translations_the_best_comes_first(bundle: Bundle, setting: dict[str, Any]) -> None:
    translator = Translator(bundle).using(beam=4, nbest=4, alpha=0.0, **setting)
    for best in translator.translations(["abc", "defg", "hij", "a"]):
        several = [("unfinished" in one.flags, -one.log_probability) for one in (best, *best.alternatives)]
        assert several == sorted(several)


def test_a_setting_that_is_none_is_refused_by_name(bundle: Bundle) -> None:
    with pytest.raises(ConfigError, match='unknown key "baem"'):
        Translator(bundle).using(baem=3)
    with pytest.raises(ConfigError, match="beam must be a multiple of beam_groups; got beam=2, beam_groups=4"):
        Translator(bundle).using(beam_groups=4)
    with pytest.raises(ConfigError, match="copy_spans must be a list of some of"):
        Translator(bundle).using(copy_spans=["url"])


def test_a_refused_text_can_be_left_out(bundle: Bundle) -> None:
    texts = ["abc", "X", "", "a" * 30, "de"]
    refused: list[InputError] = []
    translator = Translator(bundle)
    result = list(translator.translations(texts, first_line=11, on_refused=refused.append))
    assert [error.line for error in refused] == [12, 14]
    assert [translation.source for translation in result] == texts
    assert [translation.text for translation in result] == translator.translate(["abc", "", "", "", "de"])
    forced = translator.using(glossary={"a": "bcdefghij" * 3})  # longer than any translation can be
    refused.clear()
    assert next(forced.translations(["a", "b"], on_refused=refused.append)).text == ""
    assert [(error.line, "says all it must within" in str(error)) for error in refused] == [(1, True)]
    with pytest.raises(InputError, match="the prefix of every translation: 'X' at position 1") as error:
        list(translator.translations(texts, prefix="X", on_refused=refused.append))
    assert error.value.line is None
    with pytest.raises(ConfigError, match="alternatives must be 0 or more; got -1"):
        list(translator.translations(texts, alternatives=-1))
