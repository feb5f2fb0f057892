from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.apps.explain import FIGURES, Trace, attention_figures, save
from allyouneed.apps.explain.figures import _rows, alignment_figure, tree_figure
from messages import numbers_in


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(name: str, trace: Trace, tmp_path: Path) -> None:
    save(FIGURES[name](trace), tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text()
    assert svg.startswith("<svg")
    assert "#000000" not in svg  # black takes the page's colour of text


def test_a_large_tree_draws_the_most_probable_prefixes_and_says_so(trace: Trace) -> None:
    unlikely, likely = torch.full((200,), -30.0), torch.full((200,), -30.0).index_fill(0, torch.tensor(3), -0.1)
    rows = {(3,) * length: likely for length in range(6)} | {(token,): unlikely for token in range(100, 160)}
    search = replace(trace.search, log_probabilities=rows, after_rules={})
    pieces = dict.fromkeys(range(200), "unlikely") | {3: "likely"}
    (axes,) = tree_figure(replace(trace, search=search, pieces=pieces)).axes
    texts = [label for text in axes.texts if not (label := text.get_text()).startswith("end ")]
    assert texts.count("likely") == 5  # although they are longer
    assert numbers_in(axes.get_title(loc="left")) == [len(texts), 66]


def test_an_alignment_has_a_line_for_every_token(trace: Trace) -> None:
    even = {
        name: torch.full_like(x, 1 / x.shape[-1]) / 5 if name.endswith("cross_attention") else x
        for name, x in trace.recording.items()
    }
    (axes,) = alignment_figure(replace(trace, recording=even)).axes
    assert len(axes.lines) == len(trace.decoder_targets)


def test_every_attention_has_its_figure(trace: Trace) -> None:
    assert len(attention_figures(trace)) == 1 + 2 * 2


def test_the_answer_has_the_first_row_of_the_tree() -> None:
    kept = [(), (1,), (2,), (1, 3), (1, 4), (2, 5)]
    assert _rows(kept, (1, 4)) == {(): 0, (1,): 0, (1, 4): 0, (1, 3): 1, (2,): 2, (2, 5): 2}
