import re
from xml.etree import ElementTree

import pytest

from allyouneed.run.curves import HEIGHT, WIDTH, draw_curves, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 50, 100]), (0.9, 4.2, [0, 1, 2, 3, 4, 5]), (5, 5, [4, 6, 8, 10]),
        (0, 0.004, [0, 0.001, 0.002, 0.003, 0.004]),
    ],
)  # fmt: skip
def test_ticks_are_round_and_reach_around(low: float, high: float, expected: list[float]) -> None:
    result = ticks(low, high, 4)
    assert result[0] <= low
    assert result[-1] >= high
    assert result == expected


def test_a_curve_is_drawn_inside_its_figure() -> None:
    figure = draw_curves("loss & more", {"training": [(1, 5.0), (2, float("nan")), (1_000, 1.0)], "none": []})
    svg = ElementTree.fromstring(figure[figure.index("<svg") : figure.index("</figure>")])
    (line,) = [part for part in svg if part.tag == "polyline"]
    places = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert len(places) == 2
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    assert places[0][1] < places[1][1]  # the higher loss is drawn higher up
    assert "loss &amp; more" in figure
    assert not re.search("none", figure)


def test_nothing_to_draw_leaves_nothing() -> None:
    assert draw_curves("empty", {"a": []}) == ""
