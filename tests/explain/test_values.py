import json

import pytest

from allyouneed.explain import FIGURES, Trace, trace_values


def test_a_story_becomes_json_with_the_numbers_of_every_figure(story: Trace) -> None:
    data = json.loads(json.dumps(trace_values(story)))
    assert data["text"] == "abcd"
    assert set(FIGURES) <= set(data)
    assert len(data["attention"]["encoder.layers.0.attention"]) == 3
    assert len(data["embedding"]["sum"]) == len(story.source_pieces)
    assert len(data["alignment"]) == len(data["lens"]["decoder.layers.1"]) == len(story.decoder_targets)
    assert len(data["stream"]["decoder"]) == 1 + 2 * 3


def test_candidates_and_beginnings_are_those_of_the_search(story: Trace) -> None:
    data = trace_values(story)
    assert data["tree"][0]["pieces"] == []
    assert len(data["tree"]) == len(story.search.log_probabilities)
    first = [candidate["probability"] for candidate in data["steps"][0]]
    assert first == pytest.approx([chance for _, chance in story.search.best((), 5)], abs=1e-4)
