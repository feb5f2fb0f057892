"""A learning curve: shares of the pairs, scored on the same other pairs, and what is expected of twice as many."""

import json
from pathlib import Path

import pytest

from allyouneed.apps.reports.learning_curve import (
    CurvePoint,
    describe_curve,
    expect_of_twice,
    learning_curve,
    save_curve,
)
from allyouneed.data.pairs import Pair
from allyouneed.data.readers import read_pairs
from allyouneed.errors import DataError
from runs import TINY


def test_the_errors_go_on_falling_as_they_did() -> None:
    assert expect_of_twice([0.0, 20.0, 60.0, 80.0]) == pytest.approx(90.0)  # 80, 40, 20: half of the errors each time
    assert expect_of_twice([50.0, 50.0, 40.0]) == 40.0  # noise
    assert expect_of_twice([30.0, 100.0]) == 100.0


def test_larger_shares_contain_the_smaller_ones_and_are_scored_on_the_same_pairs(tmp_path: Path) -> None:
    pairs = read_pairs("dates:train", limit=100)
    settings = {name: TINY.tables()[name] for name in ("model", "train", "decode")}
    settings["train"] |= {"steps": 2, "warmup": 1, "validate_every": 2}
    settings["decode"] |= {"beam": 1, "max_length": 4}
    points = list(learning_curve(pairs, tmp_path, settings=settings))
    assert [point.pairs for point in points] == [11, 22, 45, 90]
    trained = [set(read_pairs(str(tmp_path / f"{point.pairs}/pairs/train.jsonl"))) for point in points]
    assert trained[0] < trained[1] < trained[2] < trained[3]
    held_out = {tuple(read_pairs(str(tmp_path / f"{point.pairs}/pairs/valid.jsonl"))) for point in points}
    assert len(held_out) == 1
    assert not {pair.source for pair in trained[3]} & {pair.source for pair in held_out.pop()}


def test_the_sentence_and_the_numbers_agree(tmp_path: Path) -> None:
    scores = (20.0, 60.0, 80.0)
    points = [CurvePoint(100 * 2**i, {"exact": score}, "exact") for i, score in enumerate(scores)]
    save_curve(points, tmp_path)
    assert json.loads((tmp_path / "curve.json").read_text())["expected_of_twice"] == 90
    assert "90 %" in describe_curve(points)
    assert "--minutes" in describe_curve(points[::-1])  # more pairs, fewer right
    assert "<svg" in (tmp_path / "curve.svg").read_text()


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="80 pairs"):
        list(learning_curve([Pair(f"{i}", f"{i}") for i in range(60)], tmp_path))
