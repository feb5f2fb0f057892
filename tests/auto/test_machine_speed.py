from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch

from allyouneed.auto import machine_speed
from allyouneed.auto.machine_speed import SPEED, describe_speed, free_cores, measure_speed, recorded_speed
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import add_gradients
from allyouneed.train.gradients import BatchLoss


def ticking(seconds: float) -> Callable[[], float]:
    clock = (seconds * tick for tick in count())
    return lambda: next(clock)


def test_the_speed_is_that_of_an_update_and_grows_with_the_workers() -> None:
    """1,024 tokens in 0.3 seconds are 204,800 a minute."""
    assert measure_speed(0.1, 1, now=ticking(0.3)) == {64: 204_800}
    assert measure_speed(0.1, 3, now=ticking(0.3)) == {64: 450_560}


def test_wider_models_are_measured_up_to_the_first_for_which_the_minutes_are_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 updates a minute are 2,000 in 10: 24 for each unit of a width of 64, and not of one of 128."""
    monkeypatch.setattr(machine_speed, "add_gradients", lambda *_: None)  # the clock says how long it takes
    assert list(measure_speed(10, 1, now=ticking(0.3))) == [64, 128]
    assert list(measure_speed(600, 1, now=ticking(0.3))) == [64, 128, 192, 256]


def test_measuring_changes_neither_random_numbers_nor_threads() -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    assert measure_speed(0.1, 1)[64] > 0
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_the_slowest_thread_says_how_many_cores_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    products = {1: [100], 2: [60, 90], 3: [100, 200, 150]}
    monkeypatch.setattr(machine_speed, "_count_products", lambda threads: products[threads])
    assert free_cores.__wrapped__(2) == 1.2
    assert free_cores.__wrapped__(3) == 3.0


def test_measuring_cores_leaves_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_speed, "ROUND_SECONDS", 0.001)
    before = torch.get_num_threads()
    assert 0 <= free_cores.__wrapped__(2) <= 2
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("free", "workers"), [(2.0, 2), (1.5, 2), (1.4, 1), (0.4, 1)])
def test_a_worker_counts_where_it_has_most_of_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, workers: int
) -> None:
    monkeypatch.setattr(machine_speed, "free_cores", lambda threads: free)
    monkeypatch.setattr(machine_speed, "measure_speed", lambda minutes, workers: {64: float(workers)})
    assert recorded_speed(tmp_path, 2, 2) == {64: workers}


def test_a_line_says_what_was_measured() -> None:
    assert describe_speed({64: 204_800, 128: 99_000}).endswith(
        "a minute: 204,800 with d_model=64, 99,000 with d_model=128"
    )


def test_it_is_measured_in_the_precision_in_which_the_bounds_were(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TrainConfig] = []

    def noted(
        model: Transformer, batches: list[Batch], config: TrainConfig, loss_of: BatchLoss
    ) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(config)
        return add_gradients(model, batches, config, loss_of)

    monkeypatch.setattr(machine_speed, "add_gradients", noted)
    measure_speed(0.1, 1)
    assert {config.precision for config in seen} == {"float32"}  # of the narrowest model, for which there is no time


def test_a_run_keeps_its_speed_for_the_same_minutes_and_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_speed, "free_cores", float)
    speeds = iter([{64: 5.0}, {64: 2.0}, {64: 3.0}, {64: 4.0}])
    monkeypatch.setattr(machine_speed, "measure_speed", lambda minutes, workers: next(speeds))
    conditions = ((2, 1), (2, 1), (2, 2), (2, 2), (3, 2))
    measured = [recorded_speed(tmp_path / "run", minutes, workers)[64] for minutes, workers in conditions]
    assert measured == [5.0, 5.0, 2.0, 2.0, 3.0]


CONDITIONS = '"conditions": {"minutes": 2, "workers": 1}'


@pytest.mark.parametrize(
    "damaged",
    [
        "", "[]", "null", f"{{{CONDITIONS}}}", f'{{{CONDITIONS}, "tokens_per_minute": {{}}}}',
        f'{{{CONDITIONS}, "tokens_per_minute": {{"64": 0}}}}', f'{{{CONDITIONS}, "tokens_per_minute": [3]}}',
    ],
)  # fmt: skip
def test_a_damaged_record_is_measured_again(tmp_path: Path, damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_speed, "measure_speed", lambda minutes, workers: {64: 7.0})
    (tmp_path / SPEED).write_text(damaged)
    assert recorded_speed(tmp_path, 2, 1) == {64: 7.0}
