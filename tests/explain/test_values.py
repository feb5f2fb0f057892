import json
from typing import Any

import pytest

from allyouneed.apps.explain import FIGURES, Trace, search_steps, trace_translation, trace_values
from allyouneed.translator import Translator


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
    first = [candidate["probability"] for candidate in data["steps"][0]][:5]
    assert first == pytest.approx([probability for _, probability in trace.search.best((), 5)], abs=1e-4)


@pytest.mark.parametrize("settings", [{"beam": 2}, {"beam": 1, "sample": True, "temperature": 9.0, "extra_length": 20}])
def test_every_step_has_its_chosen_token(translator_of_tests: Translator, settings: dict[str, Any]) -> None:
    trace = trace_translation(translator_of_tests.using(**settings), "abcd")
    steps = search_steps(trace)
    chosen = [[candidate["piece"] for candidate in step if candidate["chosen"]] for step in steps]
    assert chosen == [[piece] for piece in trace.decoder_targets[: len(steps)]]
    assert {len(step) for step in steps} <= {5, 6}
    assert all(candidate["probability"] > 0 for step in steps for candidate in step)
