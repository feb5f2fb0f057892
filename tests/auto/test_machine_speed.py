from itertools import count
from pathlib import Path

import pytest
import torch

from allyouneed.auto import machine_speed
from allyouneed.auto.choice_rules import TOKENS_PER_MINUTE
from allyouneed.auto.machine_speed import SPEED, describe_speed, measure_speed, recorded_speed
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import add_gradients
from allyouneed.train.gradients import BatchLoss


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


@pytest.mark.parametrize(("cores", "minutes"), [(0.5, "5.0"), (3.2, "32.0"), (180, "1,800.0")])
def test_a_line_says_what_a_budget_amounts_to(cores: float, minutes: str) -> None:
    assert describe_speed(10, cores).startswith(f"--minutes 10 counts as {minutes} minutes of one core")


def test_it_is_measured_in_the_precision_of_automatic_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TrainConfig] = []

    def noted(
        model: Transformer, batches: list[Batch], config: TrainConfig, loss_of: BatchLoss
    ) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(config)
        return add_gradients(model, batches, config, loss_of)

    monkeypatch.setattr(machine_speed, "add_gradients", noted)
    measure_speed(1)
    assert {config.precision for config in seen} == {"auto"}


def test_a_run_keeps_its_speed_for_the_same_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter([0.5, 2.0, 3.0, 4.0])
    monkeypatch.setattr(machine_speed, "measure_speed", lambda workers: next(speeds))
    assert [recorded_speed(tmp_path / "run", workers) for workers in (1, 1, 2, 2)] == [0.5, 0.5, 2.0, 2.0]


@pytest.mark.parametrize("damaged", ["", "[]", "null", '{"workers": 1}', '{"cores": 0, "workers": 1}'])
def test_a_damaged_record_is_measured_again(tmp_path: Path, damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_speed, "measure_speed", lambda workers: 0.5)
    (tmp_path / SPEED).write_text(damaged)
    assert recorded_speed(tmp_path, 1) == 0.5
