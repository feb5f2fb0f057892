"""Engines are timed once for a machine; what was timed says which of them translates, and never what it writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from allyouneed.bundle import Bundle
from allyouneed.fast import measured, selection
from allyouneed.fast.compiled import CompiledEngine, CompiledInt8Engine
from allyouneed.fast.eager import EagerEngine
from allyouneed.fast.engine import Precision
from allyouneed.fast.kv_cache import CachedState
from allyouneed.fast.measured import KERNELS, PYTORCH, ROUNDS, EngineSpeed, fastest, measure, read_speeds
from allyouneed.fast.selection import make_engine
from allyouneed.machine_notes import write_note
from allyouneed.nn import Transformer
from allyouneed.translator import Translator
from conftest import SMALL

QUICK, SLOW = EngineSpeed(0.001, (0.0001, 0.00005)), EngineSpeed(0.002, (0.0001, 0.0002))


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "available_cores", lambda: 4)


class Clock:
    """A clock on which nothing passes but what engines report."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.starts = 0.0, 0
        for name in ("perf_counter", "thread_time"):
            monkeypatch.setattr(measured, name, self)

    def __call__(self) -> float:
        return self.now

    def engine(self, seconds: float) -> Callable[[Transformer], EagerEngine]:
        """An engine whose steps take no time, and which needs `seconds` for each source that it reads."""
        clock = self

        class Timed(EagerEngine):
            def start(self, source: Tensor) -> CachedState:
                clock.starts, clock.now = clock.starts + 1, clock.now + seconds * len(source)
                return super().start(source)

        return Timed


def note(speeds: dict[str, Any], precision: Precision = "float32") -> None:
    write_note(speeds, "speed", SMALL, precision, 4)


def test_the_seconds_of_a_token_are_those_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, random = Clock(monkeypatch), torch.get_rng_state()
    speeds = measure(SMALL, "float32", {PYTORCH: clock.engine(4e-4), KERNELS: clock.engine(2e-4)})
    for name, seconds in ((PYTORCH, 1e-4), (KERNELS, 5e-5)):
        assert speeds[name].sentence == pytest.approx(seconds / 3)  # it has three times as many tokens
        assert speeds[name].batch == pytest.approx([seconds] * 3)  # among 1, 2 and 4 threads
    assert fastest(speeds) == KERNELS
    assert torch.equal(torch.get_rng_state(), random)
    assert clock.starts == 2 * (1 + ROUNDS * (1 + 1 + 2 + 4))


def test_what_was_timed_is_read_and_not_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    engines = {PYTORCH: clock.engine(0.002), KERNELS: clock.engine(0.001)}
    speeds = measure(SMALL, "float32", engines)
    starts = clock.starts
    assert measure(SMALL, "float32", engines) == read_speeds(SMALL, "float32") == speeds
    assert measure(SMALL, "float32", {PYTORCH: engines[PYTORCH]}) == {PYTORCH: speeds[PYTORCH]}
    assert clock.starts == starts
    assert read_speeds(replace(SMALL, d_model=24), "float32") == read_speeds(SMALL, "int8") == {}


def test_an_engine_that_is_new_is_timed_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    engines = {PYTORCH: clock.engine(0.002), KERNELS: clock.engine(0.001)}
    measure(SMALL, "float32", {PYTORCH: engines[PYTORCH]})
    assert measure(SMALL, "float32", engines).keys() == {PYTORCH, KERNELS}


def test_no_round_begins_when_half_a_second_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 sentences in one batch, in two parts, in four, and one alone, each 5 milliseconds: 0.485 seconds a round."""
    clock = Clock(monkeypatch)
    measure(SMALL, "float32", {PYTORCH: clock.engine(0.005)})
    assert clock.now == pytest.approx(0.005 + 2 * 0.485)
    slow = Clock(monkeypatch)
    measure(replace(SMALL, d_model=24), "float32", {PYTORCH: slow.engine(1.0)})
    assert slow.now == pytest.approx(1 + 97)  # one round, however long


@pytest.mark.parametrize(
    "noted",
    [
        {PYTORCH: 1},
        {PYTORCH: [0.1, 0.1]},
        {PYTORCH: [0.1, [0.1], 0.1]},
        {PYTORCH: [0.1, []]},
        {PYTORCH: [0.1, [0]]},
        {PYTORCH: ["fast", [0.1]]},
        {PYTORCH: [None, [0.1]]},
        {PYTORCH: {"sentence": 1}},
        {PYTORCH: [[0.1], [0.1]]},
    ],
    ids=str,
)
def test_a_record_of_something_else_is_timed_again(noted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    note(noted)
    assert read_speeds(SMALL, "float32") == {}
    clock = Clock(monkeypatch)
    speeds = measure(SMALL, "float32", {PYTORCH: clock.engine(0.004)})
    assert read_speeds(SMALL, "float32") == speeds


def test_without_a_folder_for_the_record_each_process_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    clock = Clock(monkeypatch)
    for _ in range(2):
        assert measure(SMALL, "float32", {PYTORCH: clock.engine(4e-4)})
    assert clock.starts == 2 * (1 + ROUNDS * 8)
    assert read_speeds(SMALL, "float32") == {}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.fast.kernel_cache.is_compiled", lambda precision: True)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_auto_is_the_engine_that_was_faster(precision: Precision, compiled: None, model: Transformer) -> None:
    def kind() -> type:
        return type(make_engine(model, precision=precision, compiled="auto"))

    fast = CompiledInt8Engine if precision == "int8" else CompiledEngine
    key = "speed", model.config, precision, 4
    assert kind() is (fast if precision == "int8" else EagerEngine)  # not timed
    write_note({PYTORCH: SLOW, KERNELS: QUICK}, *key)
    assert kind() is fast
    write_note({PYTORCH: QUICK, KERNELS: SLOW}, *key)
    assert kind() is EagerEngine
    assert type(make_engine(model, precision=precision, compiled=True)) is fast


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_what_was_timed_changes_no_translation(precision: Precision, compiled: None, bundle: Bundle) -> None:
    key, texts = ("speed", bundle.model.config, precision, 4), ["abcab", "jihg", "dd", "a"] * 9
    torch.set_num_threads(2)
    results, engines = [], set()
    for speeds in ({}, {PYTORCH: SLOW, KERNELS: QUICK}, {PYTORCH: QUICK, KERNELS: SLOW}):
        write_note(speeds, *key)
        translator = Translator(bundle, precision=precision, compiled="auto").using(batch_size=32)
        engines.add(translator.compiled)
        results.append([(one.text, round(one.log_probability, 4)) for one in translator.translations(texts)])
    assert engines == {False, True}
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("speed", "batches"),
    [
        (None, [16, 4]),
        (EngineSpeed(0.1, (0.1, 0.095, 0.05)), [10, 10]),
        (EngineSpeed(0.1, (0.1, 0.06, 0.056)), [16, 4]),
        (EngineSpeed(0.1, (0.1, 0.095, 0.2)), [20]),
    ],
    ids=["not timed", "four threads", "two threads", "one thread"],
)
def test_a_batch_is_divided_as_was_quickest(
    speed: EngineSpeed | None, batches: list[int], bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 texts on a machine with two threads: the least share is 16, 8, 16 or 32 texts."""
    write_note({PYTORCH: speed} if speed else {}, "speed", bundle.model.config, "float32", 4)
    translator, seen, start = Translator(bundle).using(batch_size=32, retry_repetition=False), [], EagerEngine.start

    def noting(engine: EagerEngine, source: Tensor) -> CachedState:
        seen.append(len(source))
        return start(engine, source)

    monkeypatch.setattr(EagerEngine, "start", noting)
    torch.set_num_threads(2)
    translator.translate(["abc"] * 20)
    assert sorted(seen, reverse=True) == batches


def test_both_precisions_of_a_machine_with_kernels_are_timed(compiled: None) -> None:
    for precision in ("float32", "int8"):
        speeds = selection.time_engines(SMALL, precision)
        assert speeds.keys() == {PYTORCH, KERNELS}
        assert all(speed.threads in (1, 2, 4) for speed in speeds.values())
