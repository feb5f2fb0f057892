from pathlib import Path

import pytest
import torch

from allyouneed.errors import InputError
from allyouneed.explain import draw_attention


@pytest.mark.parametrize("heads", [1, 6])
def test_a_picture_is_written(tmp_path: Path, heads: int) -> None:
    weights = torch.rand(heads, 3, 5).softmax(-1)
    path = tmp_path / "picture.png"
    draw_attention(weights, source=list("abcde"), target=["x", "␣", "<eos>"], path=path, title="a → b")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_pieces_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need 3 target and 5 source tokens; got 3 and 4"):
        draw_attention(torch.rand(2, 3, 5), source=list("abcd"), target=list("xyz"), path=tmp_path / "p.png")
