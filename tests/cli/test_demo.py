"""The promise of the front page: every unseen date right, and the examples converted."""

import pytest

from allyouneed import Translator
from allyouneed.data.tasks import date_pairs
from conftest import Demo


@pytest.mark.parametrize(
    "line",
    [
        "100.00 % of 2,000 unseen dates are translated exactly.",
        "1845-01-05  →  January 5, 1845",
        "1467-07-28  →  July 28, 1467",
        "1468-01-11  →  January 11, 1468",
        "1996-09-08  →  September 8, 1996",
        "1959-03-02  →  March 2, 1959",
        "Try next:",
    ],
)
def test_the_demo_learns_all_dates(demo: Demo, line: str) -> None:
    assert line in demo.output


def test_it_draws_what_the_decoder_looks_at(demo: Demo) -> None:
    assert (demo.folder / "runs/dates/cross_attention.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("compiled", [False, True])
def test_dates_stay_right_in_int8(demo: Demo, compiled: bool) -> None:
    translator = Translator.load(demo.folder / "runs/dates", device="cpu", precision="int8", compiled=compiled)
    sources, targets = map(list, zip(*date_pairs("test", count=2_000), strict=True))
    assert translator.precision == "int8"
    assert translator.translate(sources) == targets
