import json

import pytest

from allyouneed.explain import FIGURES, Trace, trace_values


def test_a_trace_becomes_json_with_the_numbers_of_every_figure(trace: Trace) -> None:
    data = json.loads(json.dumps(trace_values(trace)))
    assert data["text"] == "abcd"
    assert set(FIGURES) <= set(data)
    assert len(data["attention"]["encoder.layers.0.attention"]) == 3
    assert len(data["embedding"]["sum"]) == len(trace.source_pieces)
    assert len(data["alignment"]) == len(data["lens"]["decoder.layers.1"]) == len(trace.decoder_targets)
    assert len(data["stream"]["decoder"]) == 1 + 2 * 3


def test_candidates_and_beginnings_are_those_of_the_search(trace: Trace) -> None:
    data = trace_values(trace)
    assert data["tree"][0]["pieces"] == []
    assert len(data["tree"]) == len(trace.search.log_probabilities)
    first = [candidate["probability"] for candidate in data["steps"][0]]
    assert first == pytest.approx([probability for _, probability in trace.search.best((), 5)], abs=1e-4)
