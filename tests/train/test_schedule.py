import math

import pytest

from allyouneed.train import paper_rate
from allyouneed.train.schedule import share_left


def test_the_rate_rises_in_a_line_and_then_falls_with_the_root() -> None:
    rates = [paper_rate(step, d_model=512, warmup=4000) for step in (1, 2, 2000, 4000, 16_000)]
    assert math.isclose(rates[1], 2 * rates[0])
    assert math.isclose(rates[2], rates[3] / 2)
    assert math.isclose(rates[4], rates[3] / 2)


def test_its_peak_is_at_the_end_of_the_warmup() -> None:
    assert math.isclose(paper_rate(4000, d_model=512, warmup=4000), (512 * 4000) ** -0.5)
    assert math.isclose((512 * 4000) ** -0.5, 6.99e-4, rel_tol=1e-3)


@pytest.mark.parametrize(("step", "left"), [(1, 1.0), (6, 1.0), (7, 0.8), (8, 0.6), (10, 0.2)])
def test_a_cooldown_takes_the_rate_to_zero_in_a_line(step: int, left: float) -> None:
    assert math.isclose(share_left(step, steps=10, cooldown=4), left)


def test_without_a_cooldown_nothing_is_taken() -> None:
    assert all(share_left(step, steps=10, cooldown=0) == 1.0 for step in range(1, 11))
