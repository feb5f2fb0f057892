from dataclasses import replace
from typing import Any

import pytest
import torch

from allyouneed.apps.explain.trace import (
    Trace,
    alignment_matrix,
    attentions,
    residual_stream,
    trace_translation,
)
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.errors import InputError
from allyouneed.text.spans import CopyStatistics
from allyouneed.translator import Translator


def test_a_trace_has_a_place_for_every_piece(trace: Trace) -> None:
    assert trace.source_pieces == ["<sos>", "a", "b", "c", "d", "<eos>"]
    assert trace.decoder_inputs[1:] == trace.decoder_targets[:-1]
    assert (trace.decoder_inputs[0], trace.decoder_targets[-1]) == ("<sos>", "<eos>")
    assert trace.recording["logits"].shape[0] == len(trace.decoder_targets)
    assert len(attentions(trace)) == 1 + 2 * 2


def test_an_empty_text_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="a text"):
        trace_translation(Translator(bundle), " ")


def test_a_text_the_model_cannot_read_is_refused_in_a_line(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="22 tokens .*17"):
        trace_translation(Translator(bundle), "ab" * 10)
    with pytest.raises(InputError, match="'ß' .*2 .*'aß'"):
        trace_translation(Translator(bundle), "aß")


def test_an_output_that_fills_the_model_is_told_whole(bundle: Bundle) -> None:
    with torch.no_grad():
        bundle.model.projection.table[bundle.source_tokenizer.eos_id] = 0
    translator = Translator(bundle, decode=DecodeConfig(beam=1, extra_length=50))
    assert len(trace_translation(translator, "abc").decoder_targets) == bundle.model.config.max_length


def test_the_stream_has_a_stage_for_every_sublayer(trace: Trace) -> None:
    assert [stage.part for stage in residual_stream(trace, "encoder")] == [
        "embedding", "1 attention", "1 feed forward",
    ]  # fmt: skip
    assert len(residual_stream(trace, "decoder")) == 1 + 2 * 3
    assert all(stage.norm > 0 for stage in residual_stream(trace, "decoder"))


def test_alignment_is_a_distribution_for_each_written_piece(trace: Trace) -> None:
    alignment = alignment_matrix(trace)
    assert alignment.shape == (len(trace.decoder_targets), len(trace.source_pieces))
    torch.testing.assert_close(alignment.sum(-1), torch.ones(len(trace.decoder_targets)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"glossary": {"file": "Akte", "folder": ["Mappe", "Kiste"]}},
        {"copy_spans": ["placeholders", "tags"], "beam": 1},
        {"copy_spans": ["placeholders"], "glossary": {"the": "xyz"}, "nbest": 3},
        {"sample": True, "temperature": 2.0, "seed": 3},
        {"beam": 6, "nbest": 2},
        {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
        {"retry_repetition": True, "min_length": 30},
        {"replace_unknown": True, "max_length": 4},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_what_is_explained_is_what_is_translated(catalogue: Bundle, settings: dict[str, Any]) -> None:
    translator = Translator(catalogue).using(**settings)
    for text in ("could not open the file %lu", "read the folder %s and the file %.2f"):
        trace = trace_translation(translator, text)
        assert trace.translation == translator(text)
        assert "`translate` gives" not in trace.note
        assert trace.decoder_targets[:-1] == catalogue.target_tokenizer.pieces(trace.search.hypothesis.ids)
        assert "must contain" in trace.note


def test_in_int8_the_search_is_that_of_int8(catalogue: Bundle) -> None:
    translator = Translator(catalogue, precision="int8")
    trace = trace_translation(translator, "open the file %s and the disk %u")
    assert trace.translation == translator(trace.text)
    assert "int8 weights" in trace.note
    assert float(trace.search.log_probabilities[()].exp().sum()) == pytest.approx(1.0, abs=1e-5)


def test_of_a_text_in_parts_the_first_is_explained(catalogue: Bundle) -> None:
    translator, first = Translator(replace(catalogue, languages=("en", "de"))), "do you want to open <b>page</b>?"
    text = f"{first} please print the list. could not find the disk %s."
    trace = trace_translation(translator, text)
    assert (trace.text, trace.translation) == (first, translator(first))
    assert f"translated in {len(translator.split([text]).segments)} parts" in trace.note
    assert f"“{translator(text)}”" in trace.note
    assert (trace.whole_text, trace.output) == (text, translator(text))


def test_of_a_text_that_is_copied_the_page_says_so(catalogue: Bundle) -> None:
    statistics = CopyStatistics.from_pairs([("go to 7", "va a 7")] * 20)
    translator = Translator(replace(catalogue, copy_statistics=statistics)).using(copy_untranslatable=True)
    assert translator("12") == "12"
    trace = trace_translation(translator, "12")
    assert "`translate` copies" in trace.note
    assert trace.translation == translator.using(copy_untranslatable=False)("12")
    assert trace.output == "12"


def test_a_constraint_that_does_not_fit_is_refused(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="'d'"):
        trace_translation(Translator(bundle).using(glossary={"d": "abcdefghij" * 2}), "d")
