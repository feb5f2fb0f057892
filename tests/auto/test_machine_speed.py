from itertools import count

import pytest
import torch

from allyouneed.auto.choice_rules import TOKENS_PER_MINUTE
from allyouneed.auto.machine_speed import describe_speed, measure_speed


def test_the_speed_is_that_of_an_update_and_grows_with_the_workers() -> None:
    """1,024 tokens in 0.3 seconds are 204,800 a minute."""
    clock = (0.3 * tick for tick in count())
    assert measure_speed(1, now=lambda: next(clock)) == round(204_800 / TOKENS_PER_MINUTE[128], 2) == 0.29
    assert measure_speed(3, now=lambda: next(clock)) == round(204_800 / TOKENS_PER_MINUTE[128] * 2.2, 2)


def test_measuring_changes_neither_random_numbers_nor_threads() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    assert measure_speed(1) > 0
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("cores", "minutes"), [(0.5, "5"), (3.2, "32")])
def test_a_line_says_what_a_budget_amounts_to(cores: float, minutes: str) -> None:
    assert describe_speed(10, cores).startswith(f"--minutes 10 counts as {minutes} minutes of one core")
