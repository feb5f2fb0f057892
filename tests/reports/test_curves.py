import re
from xml.etree import ElementTree

import pytest

from allyouneed.apps.reports.curves import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, Curve, draw_curves, log_ticks, ticks


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


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.5, 200, [1, 10, 100]), (0.9, 4.2, [1, 2, 3, 4]), (0.3, 3, [0.5, 1, 2]), (2, 3, [2, 2.5, 3]),
        (1, 1e6, [1, 100, 1e4, 1e6]),
    ],
)  # fmt: skip
def test_logarithmic_ticks_are_round_and_within(low: float, high: float, expected: list[float]) -> None:
    assert log_ticks(low, high) == expected


def drawings(figure: str) -> dict[str, ElementTree.Element]:
    """Return the SVGs of a figure, by their class."""
    svgs = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", figure)]
    return {svg.attrib["class"]: svg for svg in svgs}


def points(svg: ElementTree.Element, number: int = 0) -> list[tuple[float, ...]]:
    line = svg.findall("polyline")[number]
    return [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]


def test_a_curve_is_drawn_inside_its_figure() -> None:
    curves = [Curve("training", [(1, 5.0), (2, float("nan")), (1_000, 1.0)]), Curve("none", [])]
    figure = draw_curves("loss & more", curves, y_title="nats", log=True)
    assert drawings(figure).keys() == {"linear", "logarithmic"}
    for svg in drawings(figure).values():
        positions = points(svg)
        assert len(positions) == 2
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in positions)
        assert positions[0][1] < positions[1][1]  # the higher loss is drawn higher up
    assert "loss &amp; more" in figure
    assert not re.search("none", figure)


def test_equal_factors_are_equally_far_apart_on_logarithmic_axes() -> None:
    curve = Curve("loss", [(1, 8.0), (10, 4.0), (100, 2.0)])
    (first, second, third) = points(drawings(draw_curves("loss", [curve], y_title="nats", log=True))["logarithmic"])
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert second[1] - first[1] == pytest.approx(third[1] - second[1], abs=0.2)


def test_every_axis_has_its_title() -> None:
    curves = [Curve("training", [(1, 5.0), (9, 2.0)]), Curve("validation", [(9, 1.0)], 2)]
    for kind, svg in drawings(draw_curves("loss", curves, y_title="left", log=True)).items():
        titles = [text.text for text in svg.findall("text") if text.get("class") == "axis"]
        end = " (log)" if kind == "logarithmic" else ""
        assert sorted(filter(None, titles)) == sorted([f"left{end}", f"updates{end}"])


def test_the_warm_up_is_shaded_as_far_as_it_went() -> None:
    curve = Curve("loss", [(1, 5.0), (100, 1.0)])
    svg = drawings(draw_curves("loss", [curve], y_title="nats", warmup=50))["linear"]
    (band,) = svg.findall("rect")
    assert float(band.attrib["x"]) == LEFT
    assert float(band.attrib["width"]) == pytest.approx((points(svg)[-1][0] - LEFT) / 2, abs=0.2)
    assert (float(band.attrib["y"]), float(band.attrib["height"])) == (TOP, HEIGHT - TOP - BOTTOM)
    assert "<rect" not in draw_curves("loss", [curve], y_title="nats", warmup=200)


def test_of_a_long_curve_neighbours_are_averaged() -> None:
    curve = Curve("loss", [(x, 1.0 + x % 2) for x in range(10_000)])
    drawn = points(drawings(draw_curves("loss", [curve], y_title="nats"))["linear"])
    assert len(drawn) == 400


def test_nothing_to_draw_leaves_nothing() -> None:
    assert draw_curves("empty", [Curve("a", [])], y_title="nats") == ""


def test_values_that_differ_by_rounding_alone_are_drawn() -> None:
    curves = [Curve("bleu", [(420, 100.00000000000004)]), Curve("exact", [(420, 100.0)])]
    assert "100" in draw_curves("scores", curves, y_title="score, 0 to 100")


@pytest.mark.parametrize("count", [1_601, 2_473])
def test_means_of_equal_values_are_drawn(count: int) -> None:
    for value in (3e-5, 5e-5, 1e-4):
        assert draw_curves("rate", [Curve("rate", [(n + 1, value) for n in range(count)])], y_title="x", log=True)
