"""Searches of ids: lengths, threads, repetition, scores."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import InputError
from allyouneed.nn import Transformer
from allyouneed.text.backends import word_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from allyouneed.translator.generation import TranslationGenerator
from untrained import TEXTS, loud


@pytest.mark.usefixtures("by_nn")
def test_a_search_is_computed_by_one_thread(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for its share of a small product keeps a core busy, and others waiting."""
    translator = Translator(bundle).using(batch_size=64)
    torch.set_num_threads(2)
    seen: list[int] = []

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            seen.append(torch.get_num_threads())
            return work(*arguments)

        return noted

    for name in ("encode", "decode"):
        monkeypatch.setattr(Transformer, name, noting(getattr(Transformer, name)))
    translator = translator.using()
    "".join(translator.stream("abc"))
    translator.alternatives("abc", after="d", count=2)
    translator.translate(["abc"] * 40)
    translator.translate_segments(translator.split(["abc"] * 40).segments)
    assert len(seen) > 20
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


def test_two_threads_find_what_one_finds_and_are_left_as_they_were(bundle: Bundle) -> None:
    texts = TEXTS * 5
    for setting in ({}, {"no_repeat_ngram_size": 2}, {"sample": True}):
        translator = Translator(bundle).using(**setting)
        one = list(translator.translations(texts))
        torch.set_num_threads(2)
        assert list(translator.translations(texts)) == one
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
    torch.set_num_threads(2)
    with pytest.raises(InputError, match="17 tokens"):
        Translator(bundle).using(glossary={"j": "abcdefghij" * 2}).translate(texts)


def test_an_output_has_at_most_so_many_tokens_more_than_its_input(bundle: Bundle) -> None:
    torch.nn.init.zeros_(bundle.model.source_embedding.table)  # every word is as likely, so the end may never come
    for extra in (1, 4):
        translator = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=extra))
        (result,) = translator.translations(["ab"])
        assert result.tokens <= 2 + extra


@pytest.mark.parametrize("setting", [{"beam": 1}, {"beam": 4}, {"sample": True}])
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


def test_what_goes_round_in_circles_is_decoded_again_and_flagged(bundle: Bundle) -> None:
    loud(bundle, "a", logit=0.5)
    guarded = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=12))
    (bare,) = guarded.using(copy_untranslatable=False, retry_repetition=False).translations(["bc"])
    (result,) = guarded.translations(["bc"])
    assert bare.text == "a" * 14
    assert bare.flags == ("unfinished",)
    assert "aaaaaa" not in result.text
    assert "repeats" in result.flags


def test_four_times_the_same_word_are_decoded_again(bundle: Bundle) -> None:
    tokenizer = Tokenizer(word_backend(["state of the union"] * 3, vocab_size=12))
    config = replace(bundle.model.config, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    words = replace(
        bundle, model=Transformer(config).eval(), source_tokenizer=tokenizer, target_tokenizer=tokenizer,
        decode=replace(bundle.decode, beam=1, max_length=4),
    )  # fmt: skip
    loud(words, "state", logit=0.5)
    (bare,) = Translator(words).using(retry_repetition=False).translations(["of the"])
    (result,) = Translator(words).translations(["of the"])
    assert bare.text == "state state state state"
    assert result.text.count("state") < 4
    assert "repeats" in result.flags


def test_repetitive_outputs_are_searched_again_together(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    loud(bundle, "a", logit=0.5)
    searched: list[int] = []
    search = TranslationGenerator._search

    def noting(generator: TranslationGenerator, requests: Any, config: DecodeConfig) -> Any:
        searched.append(len(requests))
        return search(generator, requests, config)

    monkeypatch.setattr(TranslationGenerator, "_search", noting)
    translator = Translator(bundle, decode=replace(bundle.decode, beam=1, extra_length=12))
    together = list(translator.translations(["bc", "bcd", "cde"]))
    assert all("repeats" in one.flags for one in together)
    assert searched == [3, 3]
    assert [one.text for one in together] == [translator(one.source) for one in together]


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


def test_scores_are_those_of_the_search(bundle: Bundle) -> None:
    translator = Translator(bundle)
    result = [translation for translation in translator.translations(["abc", "de", "fghij"]) if not translation.flags]
    for translation, scored in zip(result, translator.score((item.source, item.text) for item in result), strict=True):
        assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-4)
        assert len(scored.pieces) == translation.tokens


def test_scores_are_those_of_one_pass_over_the_target(bundle: Bundle) -> None:
    pairs = [("abc", "d"), ("de", "fghijab"), ("fghij", "ab"), ("a", "jihg")]
    tokenizer, model = bundle.source_tokenizer, bundle.model
    for (source, target), scored in zip(pairs, Translator(bundle).score(pairs), strict=True):
        ids = tokenizer.encode(target)
        logits = model(torch.tensor([tokenizer.encode(source)]), torch.tensor([ids[:-1]]))[0]
        logits[:, list(tokenizer.banned_ids(unknown=True))] = -torch.inf
        expected = logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]]
        assert scored.log_probabilities == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(("pair", "side"), [(("a" * 30, "b"), "source"), (("a", "b" * 30), "target")])
def test_a_text_that_is_too_long_to_score_is_refused_by_its_line(
    bundle: Bundle, pair: tuple[str, str], side: str
) -> None:
    pairs = [("a", "b")] * 4 + [pair]
    scores = Translator(bundle).score(pairs)
    with pytest.raises(InputError, match=f"the {side} has 32 .*17") as refused:
        assert len(list(scores)) == 3
    assert refused.value.line == 5


def test_scores_give_no_chance_to_what_the_search_never_says() -> None:
    tokenizer = Tokenizer(word_backend(["a dog sees a cat ."] * 5, vocab_size=40))
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


def test_a_stream_keeps_the_rules(bundle: Bundle) -> None:
    loud(bundle, "a")
    translator = Translator(bundle).using(
        copy_untranslatable=False, retry_repetition=False, no_repeat_ngram_size=2, min_length=3, beam=1
    )
    assert "".join(translator.stream("bc")) == translator("bc")
    assert "aaa" not in translator("bc")


def test_a_penalty_leaves_the_log_probabilities_true(bundle: Bundle) -> None:
    translator = Translator(bundle)
    for result in translator.using(repetition_penalty=1.5).translations(["abc", "defg"]):
        if "unfinished" not in result.flags:
            (scored,) = translator.score([(result.source, result.text)])
            assert scored.log_probability == pytest.approx(result.log_probability, abs=1e-4)


@pytest.mark.parametrize("setting", [{"repetition_penalty": 3.0}, {"sample": True}])
def test_of_several_translations_the_best_comes_first(bundle: Bundle, setting: dict[str, Any]) -> None:
    translator = Translator(bundle).using(beam=4, nbest=4, alpha=0.0, **setting)
    for best in translator.translations(["abc", "defg", "hij", "a"]):
        several = [("unfinished" in one.flags, -one.log_probability) for one in (best, *best.alternatives)]
        assert several == sorted(several)


def test_where_no_text_of_a_batch_has_a_hypothesis_there_is_nothing_to_score_again(bundle: Bundle) -> None:
    translator = Translator(bundle).using(repetition_penalty=1.5)
    moments = count()
    split = translator.split(
        ["abc", "de"], is_cancelled=lambda number: next(moments) > 3
    )  # in the middle of the search
    assert translator.translate_segments(split.segments) == [None, None]


def test_probabilities_without_banned_tokens_sum_to_one_only_if_they_are_renormalized(bundle: Bundle) -> None:
    scores = []
    for renormalize in (True, False):
        translator = Translator(bundle, decode=replace(bundle.decode, renormalize_logits=renormalize))
        (translation,) = translator.translations(["abc"])
        scores.append(translation.log_probability / translation.tokens)
    assert scores[0] > scores[1] + 1e-3
