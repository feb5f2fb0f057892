from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.apps.explain import draw_attention
from allyouneed.apps.explain.draw import attention_figure
from allyouneed.errors import InputError


@pytest.mark.parametrize("heads", [1, 6])
def test_a_picture_is_written(tmp_path: Path, heads: int) -> None:
    weights = torch.rand(heads, 3, 5).softmax(-1)
    path = tmp_path / "picture.png"
    draw_attention(weights, source=list("abcde"), target=["x", "␣", "<eos>"], path=path, title="a → b")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_long_title_is_whole_and_above_the_panels() -> None:
    title = "1845-01-05 → January 5, 1845: rows are characters of the output, columns those of the source"
    figure = attention_figure(torch.rand(1, 3, 5).softmax(-1), source=list("abcde"), target=list("xyz"), title=title)
    figure.draw_without_rendering()
    around = figure.texts[0].get_window_extent()
    assert around.x0 >= 0
    assert around.x1 <= figure.bbox.x1
    assert around.y1 <= figure.bbox.y1
    assert all(box.y1 <= around.y0 for axes in figure.axes if (box := axes.get_tightbbox()))


def test_rows_are_named_queries_and_columns_keys_beside_the_panels() -> None:
    figure = attention_figure(torch.rand(6, 3, 5).softmax(-1), source=list("abcde"), target=["<sos>", "y", "z"])
    figure.draw_without_rendering()
    assert figure.get_supxlabel().startswith("key")
    assert figure.get_supylabel().startswith("query")
    for name in figure.texts:
        around = name.get_window_extent()
        assert figure.bbox.containsx(around.x0)
        assert figure.bbox.containsy(around.y1)
        assert not any(around.overlaps(box) for axes in figure.axes if (box := axes.get_tightbbox()))


def test_pieces_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 target .*5 source .*3 .*4"):
        draw_attention(torch.rand(2, 3, 5), source=list("abcd"), target=list("xyz"), path=tmp_path / "p.png")


@pytest.mark.parametrize("pieces", ["שלום␣", "привет", "中文x"])
@pytest.mark.parametrize("name", ["picture.svg", "picture.png"])
def test_letters_that_one_font_lacks_come_from_another_or_are_named_once(
    tmp_path: Path, pieces: str, name: str
) -> None:
    weights = torch.rand(2, len(pieces), len(pieces)).softmax(-1)
    expected: Any = nullcontext()
    if pieces == "中文x" and name.endswith("png"):
        expected = pytest.warns(UserWarning, match=r"^picture\.png .*SVG")
    with expected as caught:
        draw_attention(weights, source=list(pieces), target=list(pieces), path=tmp_path / name, title=pieces)
    assert caught is None or len(caught) == 1
