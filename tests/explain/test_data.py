import json

import pytest

from allyouneed.explain import FIGURES, Story, as_data


def test_a_story_becomes_json_with_the_numbers_of_every_figure(story: Story) -> None:
    data = json.loads(json.dumps(as_data(story)))
    assert data["text"] == "abcd"
    assert set(FIGURES) <= set(data)
    assert len(data["attention"]["encoder.layers.0.attention"]) == 3
    assert len(data["embedding"]["sum"]) == len(story.read)
    assert len(data["alignment"]) == len(data["lens"]["decoder.layers.1"]) == len(story.asked)
    assert len(data["stream"]["decoder"]) == 1 + 2 * 3


def test_candidates_and_beginnings_are_those_of_the_search(story: Story) -> None:
    data = as_data(story)
    assert data["tree"][0]["pieces"] == []
    assert len(data["tree"]) == len(story.search.asked)
    first = [candidate["probability"] for candidate in data["steps"][0]]
    assert first == pytest.approx([chance for _, chance in story.search.best((), 5)], abs=1e-4)
