import math
from typing import Any

import pytest

from allyouneed.config import TrainConfig
from allyouneed.errors import ConfigError
from allyouneed.train import learning_rate_at, paper_learning_rate
from allyouneed.train.schedule import cooldown_factor


def test_the_rate_rises_in_a_line_and_then_falls_with_the_root() -> None:
    rates = [paper_learning_rate(step, d_model=512, warmup=4000) for step in (1, 2, 2000, 4000, 16_000)]
    assert math.isclose(rates[1], 2 * rates[0])
    assert math.isclose(rates[2], rates[3] / 2)
    assert math.isclose(rates[4], rates[3] / 2)


def test_its_peak_is_at_the_end_of_the_warmup() -> None:
    assert math.isclose(paper_learning_rate(4000, d_model=512, warmup=4000), (512 * 4000) ** -0.5)
    assert math.isclose((512 * 4000) ** -0.5, 6.99e-4, rel_tol=1e-3)


@pytest.mark.parametrize(("step", "left"), [(1, 1.0), (6, 1.0), (7, 0.8), (8, 0.6), (10, 0.2)])
def test_a_cooldown_takes_the_rate_to_zero_in_a_line(step: int, left: float) -> None:
    assert math.isclose(cooldown_factor(step, steps=10, cooldown=4), left)


def test_without_a_cooldown_nothing_is_taken() -> None:
    assert all(cooldown_factor(step, steps=10, cooldown=0) == 1.0 for step in range(1, 11))


def test_the_papers_schedule_is_equation_3_times_the_rate() -> None:
    equation_3 = paper_learning_rate(700, d_model=64, warmup=400)
    assert learning_rate_at(700, TrainConfig(warmup=400, steps=1000), d_model=64) == equation_3
    halved = TrainConfig(warmup=400, learning_rate=(64 * 400) ** -0.5 / 2, steps=1000)
    assert learning_rate_at(700, halved, d_model=64) == pytest.approx(equation_3 / 2)


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_the_others_rise_in_a_line_to_the_rate_itself(schedule: Any) -> None:
    config = TrainConfig(schedule=schedule, warmup=100, learning_rate=0.003, steps=1000)
    rates = [learning_rate_at(step, config, d_model=64) for step in (1, 50, 100)]
    assert rates == pytest.approx([0.00003, 0.0015, 0.003])


@pytest.mark.parametrize(
    ("schedule", "at_400", "at_550", "last"),
    [("inverse-sqrt", 0.5, 100**0.5 / 550**0.5, 0.1**0.5), ("cosine", 0.75, 0.5, 0.0), ("constant", 1.0, 1.0, 1.0)],
)
def test_how_they_fall(schedule: Any, at_400: float, at_550: float, last: float) -> None:
    config = TrainConfig(schedule=schedule, warmup=100, learning_rate=1.0, steps=1000)
    rates = [learning_rate_at(step, config, d_model=64) for step in (400, 550, 1000)]
    assert rates == pytest.approx([at_400, at_550, last], abs=2e-3)


def test_a_cooldown_comes_on_top_but_not_on_a_cosine() -> None:
    config = TrainConfig(schedule="constant", warmup=1, learning_rate=1.0, steps=10, cooldown=4)
    assert learning_rate_at(8, config, d_model=64) == pytest.approx(0.6)
    with pytest.raises(ConfigError, match="to zero"):
        TrainConfig(schedule="cosine", learning_rate=1.0, cooldown=4)
