import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.apps.explain import Trace, explain, page_data, trace_translation
from allyouneed.apps.explain.page_data import build_page_data
from allyouneed.apps.explain.search_trace import Prefix
from allyouneed.translator import Translator


def expanded(trace: Trace) -> int:
    """Count the tokens of the translation from which the search went on."""
    ids = trace.search.hypothesis.ids
    return sum(tuple(ids[:length]) in trace.search.log_probabilities for length in range(1, len(ids) + 1))


def test_the_data_have_what_the_page_describes(trace: Trace, translator_of_tests: Translator) -> None:
    data = build_page_data(trace, translator_of_tests)
    assert list(data) == [
        "text", "output", "notes", "model", "source", "target", "inputs", "search", "steps", "tree", "attention",
        "claims", "heads", "alignment", "lens", "stream", "tensors",
    ]  # fmt: skip
    assert data["output"] == translator_of_tests(data["text"])
    assert [token["piece"] for token in data["source"]] == trace.source_pieces
    assert len(data["target"]) == len(data["inputs"]) == len(data["lens"][0]["tokens"])
    assert len(data["steps"]) in (len(data["target"]), len(data["target"]) - 1)  # without <eos> where it was cut off
    assert data["alignment"] in [attention["name"] for attention in data["attention"]]
    assert len(data["heads"]) == 15


def test_the_tree_has_its_root_first_and_the_chosen_path(trace: Trace, translator_of_tests: Translator) -> None:
    nodes = build_page_data(trace, translator_of_tests)["tree"]["nodes"]
    assert (nodes[0]["parent"], nodes[0]["piece"]) == (None, "<sos>")
    assert all(node["parent"] < index for index, node in enumerate(nodes) if index)
    chosen = [node["piece"] for node in nodes if node["chosen"]][1:]
    assert chosen == trace.decoder_targets[: len(chosen)]
    assert len(chosen) == expanded(trace)


def test_a_large_tree_keeps_the_translation_and_says_how_many_there_were(
    trace: Trace, translator_of_tests: Translator
) -> None:
    row = trace.search.log_probabilities[()]
    many: dict[Prefix, torch.Tensor] = {(a, b): row for a in range(3, 13) for b in range(3, 13)}
    many |= {(a,): row for a in range(3, 13)}
    search = replace(trace.search, log_probabilities={**trace.search.log_probabilities, **many})
    pieces = {**trace.pieces, **dict.fromkeys(range(13), "x")}
    tree = build_page_data(replace(trace, search=search, pieces=pieces), translator_of_tests)["tree"]
    assert len(tree["nodes"]) <= 140
    assert tree["expanded"] > 100
    assert sum(node["chosen"] for node in tree["nodes"]) == expanded(trace) + 1


@pytest.mark.parametrize(
    ("settings", "kind"), [({"beam": 1}, "greedy"), ({"beam": 3}, "beam"), ({"sample": True, "beam": 1}, "sample")]
)
def test_the_kind_of_the_search_is_known(translator_of_tests: Translator, settings: dict[str, Any], kind: str) -> None:
    translator = translator_of_tests.using(**settings)
    data = build_page_data(trace_translation(translator, "abc"), translator)
    assert data["search"]["kind"] == kind
    assert any(not node["chosen"] for node in data["tree"]["nodes"]) == (kind == "beam")


def test_a_prefix_with_tokens_that_are_not_drawn_is_not_in_the_tree(
    trace: Trace, translator_of_tests: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_data, "count_drawn_tokens", lambda _: 2)
    depths: list[int] = []
    for node in build_page_data(trace, translator_of_tests)["tree"]["nodes"]:
        depths.append(0 if node["parent"] is None else depths[node["parent"]] + 1)
    assert max(depths) == 2
    assert expanded(trace) > 2


def test_of_long_texts_the_first_tokens_are_drawn_and_the_page_says_so(
    trace: Trace, translator_of_tests: Translator
) -> None:
    long = replace(trace, source_pieces=["a"] * 100, source_ids=[1] * 100)
    long.recording.update({})
    stretched = {
        name: x.repeat(1, 1, 20)[..., :100] if name.endswith("cross_attention") else x
        for name, x in trace.recording.items()
    }
    encoder = torch.full((3, 100, 100), 0.01)
    data = build_page_data(
        replace(long, recording={**stretched, "encoder.layers.0.attention": encoder}), translator_of_tests
    )
    assert len(data["source"]) == 64
    assert "first 64 of 100 source tokens" in data["notes"][-1]
    assert all(max(attention["weights"]["shape"]) <= 64 for attention in data["attention"])


def test_an_explanation_shows_itself_inline_and_can_be_saved(translator_of_tests: Translator, tmp_path: Path) -> None:
    explanation = explain(translator_of_tests, "abcd")
    (inside,) = re.findall(r'srcdoc="([^"]*)"', explanation._repr_html_())
    assert unescape(inside) == explanation.page
    assert "allow-scripts" in explanation._repr_html_()
    explanation.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == explanation.page
    assert repr(explanation) == f"Explanation('abcd' → {translator_of_tests('abcd')!r})"
