"""Ways take turns while they are timed, for each size; then the quickest alone is called."""

from collections.abc import Callable

import pytest

from allyouneed.fast import fastest_way
from allyouneed.fast.fastest_way import ROUNDS, FastestWay


def test_the_quickest_way_is_called_once_all_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], []

    def way(name: str, seconds: list[float]) -> Callable[[int], int]:
        def compute(number: int) -> int:
            calls.append(name)
            clock[0] += seconds.pop(0) if len(seconds) > 1 else seconds[0]
            return number + 1

        return compute

    monkeypatch.setattr(fastest_way, "perf_counter", lambda: clock[0])
    fastest = FastestWay(way("first", [9.0, 2.0]), way("disturbed", [8.0, 8.0, 1.0]))
    assert [fastest("small", number) for number in range(2 * ROUNDS + 3)] == list(range(1, 2 * ROUNDS + 4))
    assert calls == ["first", "disturbed"] * ROUNDS + ["disturbed"] * 3
    calls.clear()
    fastest("large", 1)
    assert calls == ["first"]  # sizes are timed apart
