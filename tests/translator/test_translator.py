"""`Translator` as a whole."""

import math
import multiprocessing
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import AllYouNeedError, ConfigError, InputError
from allyouneed.evaluation import evaluate
from allyouneed.nn import MultiHeadAttention, Transformer
from allyouneed.text.backends import bpe_backend
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from bundles import make_bundle
from untrained import TEXTS, spaced


@pytest.mark.parametrize("beam", [1, 3])
def test_many_are_translated_as_one_by_one_and_in_their_order(bundle: Bundle, beam: int) -> None:
    translator = Translator(bundle, decode=replace(bundle.decode, beam=beam))
    assert translator.translate(TEXTS) == [translator(text) for text in TEXTS]


@pytest.mark.parametrize(
    "setting",
    [
        {"sample": True, "nbest": 3},
        {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
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


def test_an_empty_text_stays_empty(bundle: Bundle) -> None:
    assert Translator(bundle)("") == ""
    assert Translator(bundle).translate([]) == []


def test_each_batch_says_how_many_it_finished(bundle: Bundle) -> None:
    counts: list[int] = []
    Translator(bundle).translate(TEXTS, on_progress=counts.append)
    assert counts == [2, 3, 2]  # first those that need no search


def test_progress_counts_texts_however_many_segments_they_have() -> None:
    counts: list[int] = []
    texts = ["abc", "", " ".join(["abcdefghi"] * 8), "b", " "]
    translator = spaced(copy_untranslatable=False)
    assert len(translator.split(texts).segments) > 3
    translator.using(batch_size=2).translate(texts, on_progress=counts.append)
    assert counts[0] == 2
    assert sum(counts) == len(texts)


def test_dropout_is_for_training_alone() -> None:
    bundle = make_bundle(dropout=0.4)
    translator = Translator(bundle).using(repetition_penalty=1.1)

    def results() -> list[Any]:
        return [*translator.translations(["abcdef"], align="tokens"), *translator.score([("abc", "de")])]

    expected = results()
    bundle.model.train()
    assert results() == expected
    assert bundle.model.training


def test_aligning_hooks_nothing_that_others_see(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, hooked = MultiHeadAttention.weights, list[bool]()

    def noting(*arguments: Any) -> torch.Tensor:
        hooked.append(any(part._forward_hooks for part in bundle.model.modules()))
        return weights(*arguments)

    monkeypatch.setattr(MultiHeadAttention, "weights", noting)
    list(Translator(bundle).translations(["abc"], align="tokens"))
    assert set(hooked) == {False}


def test_weights_that_have_changed_are_refused(bundle: Bundle) -> None:
    translator = Translator(bundle)
    translator("abc")
    with torch.no_grad():
        bundle.model.projection.table.mul_(2)
    for work in (
        lambda: translator("abc"),
        lambda: list(translator.stream("abc")),
        lambda: list(translator.score([("a", "b")])),
    ):
        with pytest.raises(InputError, match="have changed"):
            work()
    assert Translator(bundle)("abc")


@pytest.mark.usefixtures("by_nn")
def test_a_model_of_numbers_that_are_none_is_named_as_the_reason(bundle: Bundle) -> None:
    torch.nn.init.constant_(bundle.model.projection.table, torch.nan)
    with pytest.raises(InputError, match="'abc'.*log-probabilities"):
        Translator(bundle).using(beam=2)("abc")


MAKE: Any = Translator  # takes arguments of any type here


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda bundle: MAKE("runs/a"), r"Translator.load\(.*; got 'runs/a'"),
        (lambda bundle: MAKE(bundle, precision="int4"), "precision .*; got 'int4'"),
        (lambda bundle: MAKE(bundle).using(baem=3), 'mean "beam"'),
        (lambda bundle: MAKE(bundle).using(glossary="a.tsv"), r"Glossary.read\(file\); got 'a.t"),
        (lambda bundle: MAKE(bundle).using(glossary={"a": 3}), "a glossary"),
        (lambda bundle: MAKE(bundle).alternatives("a", count=0), "count .*1; got 0"),
        (
            lambda bundle: [*MAKE(bundle).translations(["a"], alternatives=2.5)],
            "alternatives",
        ),
        (lambda bundle: [*MAKE(bundle).score([1])], "pair .*got 1"),
        (lambda bundle: MAKE(bundle).using(glossary={"a": "é"})("a"), "'é' .*vocabulary"),
        (
            lambda bundle: evaluate(bundle, [("a", ["b"]), ("b", [])]),
            r"\('b', \[\]\)",
        ),
        (lambda bundle: evaluate(bundle, [("a", "b")], metrics="bleu"), r"metrics .*\[.*; got .*'bleu'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(work: Any, message: str, bundle: Bundle) -> None:
    with pytest.raises(AllYouNeedError, match=message):
        work(bundle)


def test_it_loads_from_a_folder(bundle: Bundle, saved: Path) -> None:
    translator = Translator.load(str(saved), device="cpu", beam=3)
    assert translator.decode == replace(bundle.decode, beam=3)
    assert translator("abc") == Translator(bundle, decode=replace(bundle.decode, beam=3))("abc")


def test_a_pickled_translator_translates_alike(bundle: Bundle) -> None:
    translator = Translator(bundle).using(beam=3, glossary={"ab": "cd"})
    texts = ["abc", "jihg", "dabab"]
    assert pickle.loads(pickle.dumps(translator)).translate(texts) == translator.translate(texts)


def test_a_spawned_process_translates_alike(bundle: Bundle) -> None:
    translator = Translator(bundle)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(translator, ["abc", "jihg"]) == translator.translate(["abc", "jihg"])


def test_a_device_that_is_not_there_is_refused(saved: Path) -> None:
    with pytest.raises(ConfigError, match='"auto", "cpu", "cuda" or "mps"'):
        Translator.load(saved, device="toaster")


def test_a_stream_is_the_greedy_translation_piece_by_piece(bundle: Bundle) -> None:
    translator = Translator(bundle).using(beam=1, copy_untranslatable=False, retry_repetition=False)
    for text in TEXTS:
        assert "".join(translator.stream(text)) == translator(text)


def test_a_stream_ends_as_the_translation_does_where_a_letter_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(bpe_backend(["ab"], vocab_size=259))
    config = ModelConfig(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2)
    translator = Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig()))
    ids = tokenizer.encode("aé")[1:-2]  # without the second byte of é
    monkeypatch.setattr(translator._generator, "stream", lambda source: iter(ids))
    assert list(translator.stream("a")) == ["a", "\N{REPLACEMENT CHARACTER}"]
    assert tokenizer.decode(ids) == "a\N{REPLACEMENT CHARACTER}"


def test_alternatives_go_on_differently_after_the_same_beginning(bundle: Bundle) -> None:
    result = Translator(bundle).alternatives("abc", after="de", count=4)
    assert all(translation.text.startswith("de") for translation in result)
    assert len({translation.text[2] for translation in result}) == 4


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
    with pytest.raises(InputError, match="4 tokens"):
        "".join(translator.using(max_length=4, glossary={"abc": "ijijij"}).stream("abc"))


def test_every_text_may_have_a_prefix_of_its_own(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the texts are read in several windows, and some are copied, blank or refused."""
    monkeypatch.setattr("allyouneed.translator.translator.WINDOW", 1)
    translator = Translator(bundle).using(batch_size=2)
    texts = ["abc", "", "de", "X", "jig"]
    prefixes = ["d", "e", "", "f", "d"]
    refused: list[InputError] = []
    together = list(translator.translations(iter(texts), prefix=prefixes, on_refused=refused.append))
    assert [error.line for error in refused] == [4]
    for text, prefix, result in zip(texts, prefixes, together, strict=True):
        if text != "X":
            (alone,) = translator.translations([text], prefix=prefix)
            assert (result.text, result.source) == (alone.text, text)
            assert result.text.startswith(prefix if text else "")


@pytest.mark.parametrize(
    ("prefix", "message", "line"),
    [
        (["a"], "prefix .*2 texts; .*1", None),
        (["a", "b", "c"], "2 texts; got 3", None),
        (None, "prefix", None),
        (["a", 3], "prefix .*got 3", 2),
        (["a", "X"], "translation: 'X' .*position 1", 12),
        (["a" * 17, "a"], "17 tokens", 11),
    ],
)
def test_a_prefix_that_is_none_for_each_text_is_refused(
    bundle: Bundle, prefix: Any, message: str, line: int | None
) -> None:
    with pytest.raises(InputError, match=message) as error:
        list(Translator(bundle).translations(["abc", "de"], prefix=prefix, first_line=11))
    assert error.value.line == line


def test_every_text_gets_alternatives_of_its_own(bundle: Bundle) -> None:
    translator = Translator(bundle)
    for text, result in zip(TEXTS, translator.translations(TEXTS, prefix="d", alternatives=3), strict=True):
        alone = translator.alternatives(text, after="d", count=3)
        assert [result.text, *(other.text for other in result.alternatives)] == [item.text for item in alone]
        assert len(result.alternatives) == (2 if text else 0)


def test_a_setting_that_is_none_is_refused_by_name(bundle: Bundle) -> None:
    with pytest.raises(ConfigError, match='"baem"'):
        Translator(bundle).using(baem=3)
    with pytest.raises(ConfigError, match="copy_spans"):
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
    assert [error.line for error in refused] == [1]
    with pytest.raises(InputError, match="'X' .*position 1") as error:
        list(translator.translations(texts, prefix="X", on_refused=refused.append))
    assert error.value.line is None
    with pytest.raises(ConfigError, match="alternatives .*got -1"):
        list(translator.translations(texts, alternatives=-1))


def other_model(bundle: Bundle, **sizes: Any) -> Bundle:
    """Make an untrained model of the same vocabulary and other sizes."""
    config = replace(bundle.model.config, d_model=16, heads=2, d_ff=24, encoder_layers=1, norm="pre", **sizes)
    return replace(bundle, model=Transformer(config).eval())


SEARCHES: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 3, "nbest": 3},
    {"sample": True, "nbest": 2},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
    {"glossary": {"ab": "j"}},
]


@pytest.mark.parametrize("setting", SEARCHES, ids=str)
def test_a_model_twice_translates_as_the_model_alone(bundle: Bundle, setting: dict[str, Any]) -> None:
    alone, twice = (Translator(*bundles).using(**setting) for bundles in ([bundle], [bundle, bundle]))
    for one, other in zip(*(list(which.translations(TEXTS, align="tokens")) for which in (alone, twice)), strict=True):
        assert (other.text, other.flags, other.alignment) == (one.text, one.flags, one.alignment)
        assert other.confidence == pytest.approx(one.confidence, abs=1e-4)
        assert [another.text for another in other.alternatives] == [another.text for another in one.alternatives]
    assert list(twice.stream("abc")) == list(alone.stream("abc"))
    assert [one.text for one in twice.alternatives("abc", after="j", count=3)] == [
        one.text for one in alone.alternatives("abc", after="j", count=3)
    ]


@pytest.mark.parametrize("setting", SEARCHES[:2], ids=str)
def test_models_of_other_sizes_translate_together(bundle: Bundle, setting: dict[str, Any]) -> None:
    """What they score a translation with is the mean of their probabilities, with which it was also found."""
    members = [bundle, other_model(bundle)]
    together = Translator(*members).using(retry_repetition=False, copy_untranslatable=False, **setting)
    translations = list(together.translations(["abc", "j"]))
    pairs = [(one.source, one.text) for one in translations if one.text and "unfinished" not in one.flags]
    scored = list(together.score(pairs))
    alone = [list(Translator(member).score(pairs)) for member in members]
    for one, *members_scores in zip(scored, *alone, strict=True):
        means = zip(*(scores.log_probabilities for scores in members_scores), strict=True)
        expected = [math.log(sum(map(math.exp, values)) / 2) for values in means]
        assert one.log_probabilities == pytest.approx(expected, abs=1e-5)
    assert together.decode == replace(bundle.decode, retry_repetition=False, copy_untranslatable=False, **setting)
    by_text = {one.target: one.log_probability / len(one.log_probabilities) for one in scored}
    for one in translations:
        if one.text in by_text:
            assert one.confidence == pytest.approx(by_text[one.text], abs=1e-4)


def test_an_ensemble_loads_from_folders_reads_as_much_as_its_shortest_member_and_can_be_pickled(
    bundle: Bundle, saved: Path, tmp_path: Path
) -> None:
    other_model(bundle, max_length=9).save(tmp_path / "other")
    translator = Translator.load(saved, tmp_path / "other", precision="float32", beam=2)
    assert len(translator.bundles) == 2
    assert pickle.loads(pickle.dumps(translator)).translate(TEXTS[:3]) == translator.translate(TEXTS[:3])
    assert all(one.tokens <= 9 for one in translator.using(extra_length=50).translations(TEXTS[:3]))
    with pytest.raises(InputError, match="12 tokens .*9"):
        translator("aaaaaaaaaa")


def test_models_that_do_not_go_together_are_refused(bundle: Bundle, saved: Path, tmp_path: Path) -> None:
    letters = Tokenizer.characters("abcdefgxij")
    replace(bundle, source_tokenizer=letters, target_tokenizer=letters).save(tmp_path / "x")
    with pytest.raises(ConfigError, match="id 7 .*'h'"):
        Translator.load(saved, tmp_path / "x")
    both = [replace(bundle, languages=("en", "it")), replace(bundle, languages=("it", "en"))]
    with pytest.raises(ConfigError, match="1 .*en → it, .*2 "):
        Translator(*both)


def test_what_a_vocabulary_does_not_know_is_flagged_and_stops_no_other_text() -> None:
    known = make_bundle()
    tokenizer = Tokenizer.characters("abcdefghij", unknown=True)
    sizes = replace(known.model.config, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    translator = Translator(Bundle(Transformer(sizes).eval(), tokenizer, tokenizer, DecodeConfig()))
    flags = [translation.flags for translation in translator.translations(["abc", "aЖc", "cab"])]
    assert ["unknown" in some for some in flags] == [False, True, False]
    with pytest.raises(InputError, match="Ж"):
        Translator(known).translate(["abc", "aЖc"])


@pytest.mark.parametrize("least", [1, 10**9])
def test_a_bundle_in_memory_and_one_on_disk_translate_in_one_precision(
    least: int, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.translator.engine.INT8_MIN_PROJECTION", least)
    bundle.save(tmp_path)
    precisions = {Translator(bundle).precision, Translator.load(tmp_path, device="cpu").precision}
    assert precisions == {"int8" if least == 1 else "float32"}
