"""The film of a run: frames ever further apart, which change nothing in the run and survive an interruption."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from allyouneed import Bundle, fit
from allyouneed.files import read_json_lines
from allyouneed.run.film import FILM_FILE, is_filmed
from runs import TINY, StopAt, read_weights


def make_frame(bundle: Bundle) -> dict[str, Any]:
    return {"sum": float(sum(weight.detach().double().abs().sum() for weight in bundle.model.parameters()))}


def test_frames_are_ever_further_apart() -> None:
    filmed = [step for step in range(100_001) if is_filmed(step)]
    assert filmed[:8] == [0, 5, 10, 16, 23, 31, 40, 50]
    assert 40 < len(filmed) < 70
    gaps = [after - before for before, after in pairwise(filmed)]
    assert gaps == sorted(gaps)


def test_a_film_begins_before_the_first_update_and_ends_after_the_last(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "filmed", evaluate=None, film=make_frame)
    fit(TINY, tmp_path / "plain", evaluate=None)
    frames = read_json_lines(tmp_path / "filmed" / FILM_FILE)
    assert [frame["step"] for frame in frames] == [0, 5, 10, 12]
    assert frames[0]["loss"] is None
    assert all(frame["loss"] > 0 for frame in frames[1:])
    assert len({frame["sum"] for frame in frames}) == 4  # of other weights each
    assert read_weights(tmp_path / "filmed") == read_weights(tmp_path / "plain")
    assert not (tmp_path / "plain" / FILM_FILE).exists()


def test_a_resumed_run_goes_on_with_its_film(tmp_path: Path) -> None:
    fit(TINY, tmp_path / "straight", evaluate=None, film=make_frame)
    with pytest.raises(KeyboardInterrupt):
        fit(TINY, tmp_path / "run", evaluate=None, film=make_frame, callback=StopAt(11))
    fit(TINY, tmp_path / "run", evaluate=None, film=make_frame, resume=True)
    straight, resumed = (read_json_lines(tmp_path / name / FILM_FILE) for name in ("straight", "run"))
    assert [frame["sum"] for frame in resumed] == [frame["sum"] for frame in straight]
