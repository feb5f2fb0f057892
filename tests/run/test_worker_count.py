"""How many cores train a run: those that make it fastest, by the time of its updates."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from allyouneed import ConfigError, TrainConfig, Transformer
from allyouneed.config import ModelConfig
from allyouneed.run import worker_count
from allyouneed.run.state import CoreTrial, TrainState
from allyouneed.run.worker_count import CoreChoice, begin_with_cores, choose_cores, most_workers, window_size

DATES = Transformer(ModelConfig(vocab_size=68, d_model=64, d_ff=256, heads=4, encoder_layers=2, decoder_layers=2))
WINDOW = 20  # updates
Speed = Callable[[int, int], float]  # updates a second on some cores, at an update


def cores_of_a_run(
    speed: Speed, updates: int, *, most: int = 2, starts: bool = True, earlier: TrainState | None = None
) -> list[int]:
    """Return the cores with which each window of a run was trained."""
    started: list[int] = []
    choice = CoreChoice(most, WINDOW, start=started.append, can_start=lambda: starts, say=lambda _: None)
    state, used = TrainState(cores=1), []
    state = begin_with_cores(state, earlier) if earlier else state
    for step in range(1, updates + 1):
        state.step = step
        choice.count(1000, 1 / speed(state.cores, step))
        if step % WINDOW == 0:
            used.append(state.cores)
            before, now = state.cores, choice.choose(state, updates - step)
            assert now in (0, state.cores)
            assert now <= before or now in started  # its processes were started ahead
    return used


def share(used: list[int], cores: int) -> float:
    return used.count(cores) / len(used)


def test_more_processes_train_where_they_gain() -> None:
    used = cores_of_a_run(lambda cores, _: [10, 16][cores - 1], 20_000)
    assert used[:5] == [1, 1, 1, 1, 2]
    assert share(used[4:], 2) > 0.97
    assert used[-1] == 2


def test_a_further_model_begins_with_the_cores_of_the_one_before_and_still_follows_a_change() -> None:
    earlier = TrainState(cores=2, gains=[(2, 1.6)])
    used = cores_of_a_run(lambda cores, _: [10, 16][cores - 1], 20_000, earlier=earlier)
    assert used[:11] == [2] * 11
    assert share(used, 2) > 0.97
    assert cores_of_a_run(lambda cores, _: [10, 6][cores - 1], 20_000, earlier=earlier)[-1] == 1


def test_where_two_processes_do_not_gain_one_trains_and_few_updates_are_spent_on_trials() -> None:
    used = cores_of_a_run(lambda cores, _: [10, 10.4][cores - 1], 20_000)
    assert used[-1] == 1
    assert 0.97 < share(used, 1) < 1
    hopeless = cores_of_a_run(lambda cores, _: [10, 4][cores - 1], 20_000)
    assert hopeless.count(2) < used.count(2)


@pytest.mark.parametrize("gain", [0.8, 1.3])
def test_the_faster_number_trains_though_the_speed_of_a_core_changes_by_a_fifth(gain: float) -> None:
    """As that of a virtual machine does, for seconds; a wrong result of one trial is made good by others."""
    speed, shares = [10.0, 10 * gain], []
    for seed in range(40):
        rng = random.Random(seed)
        noise = [rng.choice([1.0, 1.0, 1.0, 0.8, 1.2]) for _ in range(100)]  # each for two windows

        def speed_at(cores: int, step: int, noise: list[float] = noise) -> float:
            return speed[cores - 1] * noise[(step - 1) // (2 * WINDOW)]

        shares.append(share(cores_of_a_run(speed_at, 200 * WINDOW), 2 if gain > 1 else 1))
    assert sum(shares) / len(shares) > 0.85


def test_of_many_cores_as_many_train_as_gain() -> None:
    used = cores_of_a_run(lambda cores, _: 10 * min(cores, 5), 20_000, most=6)
    assert used[0] == 1
    assert share(used, 6) > 0.95
    assert share(cores_of_a_run(lambda cores, _: 10 * min(cores, 4), 20_000, most=6), 4) > 0.9


@pytest.mark.parametrize("freed", [False, True])
def test_when_other_programs_begin_or_end_the_number_follows(freed: bool) -> None:
    """Beside a busy program two processes wait for the slower one; one alone has a core."""

    def speed(cores: int, step: int) -> float:
        is_busy = (step < 10_000) == freed
        return {(1, False): 10.0, (2, False): 16.0, (1, True): 9.0, (2, True): 7.0}[cores, is_busy]

    used = cores_of_a_run(speed, 40_000)
    before, after = used[: 10_000 // WINDOW], used[10_000 // WINDOW :]
    assert before[-1] == (1 if freed else 2)
    assert after[-1] == (2 if freed else 1)
    if not freed:
        assert after.index(1) <= 6


def test_a_trial_goes_on_where_a_run_was_stopped() -> None:
    """The state has all that is needed to judge it."""
    for fast in (True, False):
        state = TrainState(step=5 * WINDOW, cores=2)
        state.trial = CoreTrial(1, 10_000.0, 6)  # in its last window
        state = TrainState(**{**state.scalars(), "trial": list(state.trial)})
        choice = CoreChoice(2, WINDOW, start=lambda _: None, can_start=lambda: True, say=lambda _: None)
        state.step = 6 * WINDOW
        choice.count(1000, 1 / (16 if fast else 8))
        assert choice.choose(state, 10_000) == (0 if fast else 1)
        assert (state.cores, state.trial) == (2 if fast else 1, None)


def test_nothing_is_tried_in_a_short_run_or_with_processes_that_do_not_start() -> None:
    assert set(cores_of_a_run(lambda cores, _: 10 * cores, 250)) == {1}
    assert set(cores_of_a_run(lambda cores, _: 10 * cores, 4_000, starts=False)) == {1}


def test_a_process_has_one_thread_and_more_train_only_where_they_may_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_count, "available_cores", lambda: 64)

    def cores(can_divide: bool = True, **settings: Any) -> tuple[int, int, int]:
        """Return the first, the most, and the threads of a process at first."""
        config = TrainConfig(**{"steps": 800, "batch_tokens": 800, **settings})
        chosen = choose_cores(config, DATES, can_divide=can_divide)
        processes = chosen.processes(chosen.first)
        return chosen.first, chosen.most, chosen.threads_each(chosen.first, processes_here=processes)

    assert cores() == (1, 4, 1)  # parts of 200 tokens
    assert cores(batch_tokens=50) == (1, 1, 1)
    assert cores(batch_tokens=100_000) == (1, 64, 1)
    assert cores(threads=1) == (1, 1, 1)
    assert cores(threads=2) == (1, 2, 2)
    assert cores(workers=3) == (3, 3, 1)
    assert cores(workers=3, threads=6) == (3, 3, 2)
    assert cores(can_divide=False) == (1, 4, 1)  # as threads
    assert cores(can_divide=False, threads=4) == (4, 4, 4)
    with pytest.raises(ConfigError, match="train.workers=3"):
        cores(can_divide=False, workers=3)


def test_a_run_that_goes_on_where_there_are_fewer_cores_has_as_many_as_there_are() -> None:
    state = TrainState(cores=8, trial=CoreTrial(4, 1.0, 3))
    assert worker_count.Cores(1, 4, 0, False).resumed(state) == 4
    assert (state.cores, state.trial) == (4, None)
    assert worker_count.Cores(3, 3, 0, False).resumed(state) == 3


def test_a_window_is_as_long_whatever_the_machine() -> None:
    """So a resumed run tries at the same updates."""
    small, large = TrainConfig(batch_tokens=800), TrainConfig(batch_tokens=80_000)
    assert window_size(small, DATES) * 800 * DATES.parameter_count() == pytest.approx(2e10, rel=0.01)
    assert window_size(large, DATES) == 16


def test_a_run_can_have_a_worker_for_each_core_those_that_are_set_or_those_of_torchrun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_count, "available_cores", lambda: 8)
    assert most_workers(TrainConfig(), can_divide=True) == 8
    assert most_workers(TrainConfig(threads=4), can_divide=True) == 4
    assert most_workers(TrainConfig(), can_divide=False) == 1
    assert most_workers(TrainConfig(workers=3), can_divide=True) == 3
    monkeypatch.setenv("WORLD_SIZE", "5")
    monkeypatch.setenv("RANK", "0")
    assert most_workers(TrainConfig(), can_divide=True) == 5
