from pathlib import Path

import pytest

from allyouneed.explain import FIGURES, Trace, attention_figures, save
from allyouneed.explain.figures import _rows


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(name: str, trace: Trace, tmp_path: Path) -> None:
    save(FIGURES[name](trace), tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text()
    assert svg.startswith("<svg")
    assert "#000000" not in svg  # black takes the page's colour of text


def test_every_attention_has_its_figure(trace: Trace) -> None:
    assert len(attention_figures(trace)) == 1 + 2 * 2


def test_the_answer_has_the_first_row_of_the_tree() -> None:
    kept = [(), (1,), (2,), (1, 3), (1, 4), (2, 5)]
    assert _rows(kept, (1, 4)) == {(): 0, (1,): 0, (1, 4): 0, (1, 3): 1, (2,): 2, (2, 5): 2}
