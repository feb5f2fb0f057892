import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from allyouneed.apps.explain.search_trace import SearchTrace, percent, trace_search
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.decode import Hypothesis
from allyouneed.nn import Transformer
from allyouneed.translator import Translator
from untrained import loud


def trace_text(translator: Translator, text: str) -> SearchTrace:
    """Trace the search for the translation of a text that is not split."""
    (segment,) = translator.split([text]).segments
    return trace_search(translator, segment)


@pytest.fixture(params=[1, 2, 4])
def translator(request: pytest.FixtureRequest, bundle: Bundle) -> Translator:
    return Translator(
        bundle,
        decode=DecodeConfig(beam=request.param, extra_length=4, copy_untranslatable=False, retry_repetition=False),
    )


def test_a_traced_search_finds_what_the_translator_finds(translator: Translator) -> None:
    for text in ("abc", "j", "deadbeef"):
        trace = trace_text(translator, text)
        assert translator.source_tokenizer.decode(trace.hypothesis.ids) == translator(text)


def test_what_is_noted_is_what_the_model_says(translator: Translator) -> None:
    model, tokenizer = translator.model, translator.source_tokenizer
    trace = trace_text(translator, "abc")
    assert () in trace.log_probabilities
    source = torch.tensor([tokenizer.encode("abc")])
    for beginning, row in trace.log_probabilities.items():
        logits = model(source, torch.tensor([[tokenizer.sos_id, *beginning]]))[0, -1].detach()
        logits[[tokenizer.pad_id, tokenizer.sos_id]] = -torch.inf
        torch.testing.assert_close(row, logits.log_softmax(-1), atol=1e-4, rtol=1e-4)


def test_the_log_probability_of_the_answer_is_the_search_s(translator: Translator) -> None:
    trace = trace_text(translator, "abc")
    ids = tuple(trace.hypothesis.ids)
    sentence = (*ids, trace.eos_id) if ids in trace.log_probabilities else ids
    assert trace.log_probability(sentence) == pytest.approx(trace.hypothesis.log_probability, abs=1e-4)
    assert trace.score(sentence) == pytest.approx(trace.hypothesis.score, abs=1e-4)


def test_the_end_of_the_search_is_explained(bundle: Bundle) -> None:
    with torch.no_grad():
        bundle.model.projection.table[bundle.source_tokenizer.eos_id] = 0
    bounded = trace_text(Translator(bundle, decode=DecodeConfig(beam=1, extra_length=1)), "a")
    assert "limit of 2 tokens" in bounded.explain_ending()


def ended_at_once(row: list[float], **settings: Any) -> SearchTrace:
    """Make a search that wrote only `<eos>`, the last of the tokens whose log-probabilities are given."""
    hypothesis = Hypothesis([], row[-1], row[-1], finished=True)
    config = DecodeConfig(**settings)
    return SearchTrace(hypothesis, {(): torch.tensor(row).log_softmax(-1)}, len(row) - 1, 5, config)


@pytest.mark.parametrize("beam", [1, 2])
def test_a_forced_end_is_named(bundle: Bundle, beam: int) -> None:
    with torch.no_grad():
        bundle.model.projection.table[bundle.source_tokenizer.eos_id] = -9
    decode = DecodeConfig(beam=beam, max_length=5, forced_eos=True, copy_untranslatable=False, retry_repetition=False)
    ending = trace_text(Translator(bundle, decode=decode), "abcd").explain_ending()
    assert re.search("limit of 5 tokens, .*forced_eos .*<eos>", ending)


def test_an_end_that_only_the_rules_make_most_probable_is_no_choice_of_the_model() -> None:
    trace = ended_at_once([2.0, 0.0], beam=1)
    assert "(12 %)" in trace.explain_ending()
    assert "next token (88 %)" in ended_at_once([0.0, 2.0], beam=1).explain_ending()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "its probability was 11 %"),
        ({"temperature": 2.0}, "its probability with temperature=2 was 20 %"),
        ({"top_k": 2, "top_p": 0.99}, "its probability with top_k=2 and top_p=0.99 was 12 %"),
    ],
)
def test_the_probability_of_a_draw_is_that_of_the_draw(settings: dict[str, Any], words: str) -> None:
    assert words in ended_at_once([2.0, -1.0, -1.0, 0.0], sample=True, **settings).explain_ending()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "once 4 hypotheses"),
        ({"patience": 1.6, "nbest": 2}, "the 2 best .* once 7 hypotheses"),
        ({"early_stopping": "beam"}, "when 4 hypotheses .* the 4 best"),
    ],
)
def test_the_rule_that_stops_a_beam_search_follows_the_settings(settings: dict[str, Any], words: str) -> None:
    assert re.search(words, ended_at_once([0.0, 0.0], beam=4, **settings).explain_ending())


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1e-6, "< 0.1 %"), (0.001, "0.1 %"), (0.0996, "10.0 %"), (0.5, "50 %"), (1, "100 %")],
)
def test_only_0_itself_is_0_percent(share: float, text: str) -> None:
    assert percent(share) == text


def test_candidates_come_best_first(translator: Translator) -> None:
    best = trace_text(translator, "abc").best((), 5)
    probabilities = [probability for _, probability in best]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) <= 1.0001


def test_a_trace_keeps_the_rules_and_the_guard(bundle: Bundle) -> None:
    loud(bundle, "a", logit=0.5)  # it goes round in circles
    plain = Translator(bundle, decode=DecodeConfig(beam=1, extra_length=12))
    for translator in (plain, plain.using(copy_untranslatable=False, retry_repetition=False, no_repeat_ngram_size=2)):
        result = trace_text(translator, "bc").hypothesis
        assert translator.source_tokenizer.decode(result.ids) == translator("bc") != "a" * 14


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("settings", [{}, {"min_length": 6}, {"max_length": 6, "forced_eos": True}])
def test_the_finished_hypotheses_are_those_of_the_search(bundle: Bundle, seed: int, settings: dict[str, Any]) -> None:
    torch.manual_seed(seed)
    model = Transformer(bundle.model.config).eval()
    plain: dict[str, Any] = {"extra_length": 4, "copy_untranslatable": False, "retry_repetition": False}
    decode = DecodeConfig(beam=4, nbest=4, **plain | settings)
    translator = Translator(replace(bundle, model=model), decode=decode)
    (segment,) = translator.split(["abcd"]).segments
    (hypotheses,), _ = translator._generator.generate([segment.request])
    finished = {tuple(one.ids): one.score for one in hypotheses if one.finished}
    ended = trace_text(translator, "abcd").ended()
    assert list(ended)[: len(finished)] == list(finished)
    assert [ended[ids] for ids in finished] == pytest.approx(list(finished.values()), abs=1e-4)
    assert len(finished) == 4 or len(ended) == len(finished)
