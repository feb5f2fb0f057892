from dataclasses import replace

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.explain.search_trace import SearchTrace, trace_search
from allyouneed.nn import Transformer
from allyouneed.translator import Translator


def trace_text(translator: Translator, text: str) -> SearchTrace:
    """The search for the translation of a text that is not split."""
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
    assert "its limit of 2 tokens" in bounded.explain_ending()


def test_candidates_come_best_first(translator: Translator) -> None:
    best = trace_text(translator, "abc").best((), 5)
    probabilities = [probability for _, probability in best]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) <= 1.0001


def test_a_trace_keeps_the_rules_and_the_guard(bundle: Bundle) -> None:
    with torch.no_grad():  # one letter is likeliest everywhere, so that it goes round in circles
        model = bundle.model
        model.target_embedding.table.zero_()
        model.target_embedding.table[bundle.source_tokenizer.encode("a")[1]] = 1.0
        last = model.get_submodule(f"decoder.layers.{model.config.decoder_layers - 1}.feed_forward_residual.norm")
        last.get_parameter("gain").zero_()
        last.get_parameter("bias").fill_(1.0)
    plain = Translator(bundle, decode=DecodeConfig(beam=1, extra_length=12))
    for translator in (plain, plain.using(copy_untranslatable=False, retry_repetition=False, no_repeat_ngram_size=2)):
        result = trace_text(translator, "bc").hypothesis
        assert translator.source_tokenizer.decode(result.ids) == translator("bc") != "a" * 14


@pytest.mark.parametrize("seed", range(20))
def test_the_finished_hypotheses_are_those_of_the_search(bundle: Bundle, seed: int) -> None:
    torch.manual_seed(seed)
    model = Transformer(bundle.model.config).eval()
    decode = DecodeConfig(beam=4, nbest=4, extra_length=4, copy_untranslatable=False, retry_repetition=False)
    translator = Translator(replace(bundle, model=model), decode=decode)
    (segment,) = translator.split(["abcd"]).segments
    (hypotheses,), _ = translator._generator.generate([segment.request])
    finished = {tuple(one.ids): one.score for one in hypotheses if one.finished}
    ended = trace_text(translator, "abcd").ended()
    assert list(ended)[: len(finished)] == list(finished)
    assert [ended[ids] for ids in finished] == pytest.approx(list(finished.values()), abs=1e-4)
    assert len(finished) == 4 or len(ended) == len(finished)
