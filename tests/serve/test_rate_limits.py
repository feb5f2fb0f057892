"""Rate limits: what a moving window admits, what a day holds, and what counts as one client."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.apps.serve import rate_limits
from allyouneed.apps.serve.rate_limits import DailyCharacters, MovingWindow, client_address


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), max_size=40), st.integers(1, 12))
def test_no_window_of_a_minute_holds_more_than_the_limit(steps: list[tuple[float, int]], limit: int) -> None:
    clock = Clock()
    window = MovingWindow(60, clock=clock)
    admitted: list[tuple[float, int]] = []
    for pause, cost in steps:
        clock.now += pause
        before = sum(spent for when, spent in admitted if when > clock.now - 60)
        if window.admit("client", limit=limit, cost=cost) == 0:
            admitted.append((clock.now, cost))
            assert before + cost <= limit
        else:
            assert before + cost > limit


def test_after_the_seconds_it_names_the_same_request_is_admitted() -> None:
    clock = Clock()
    window = MovingWindow(60, clock=clock)
    for _ in range(3):
        assert window.admit("client", limit=3) == 0
        clock.now += 10
    wait = window.admit("client", limit=3, cost=2)
    assert wait == 40  # the first two requests leave the window 60 seconds after they came
    clock.now += wait - 0.1
    assert window.admit("client", limit=3, cost=2) > 0
    clock.now += 0.1
    assert window.admit("client", limit=3, cost=2) == 0


def test_clients_do_not_share_a_window() -> None:
    window = MovingWindow(60)
    assert window.admit("one", limit=1) == 0
    assert window.admit("other", limit=1) == 0
    assert window.admit("one", limit=1) > 0


def test_the_memory_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MAX_CLIENTS", 10)
    window = MovingWindow(60)
    for number in range(100):
        window.admit(str(number), limit=1)
    assert len(window._clients) == 10
    assert window.count("99") == 1


def test_characters_are_counted_by_the_day() -> None:
    clock = Clock()
    clock.now = 86_400 * 20_000 + 3_600.0
    day = DailyCharacters(clock=clock)
    assert day.admit("key", limit=100, cost=100) == 0
    assert day.admit("key", limit=100, cost=1) == 23 * 3_600
    assert day.count("key") == 100
    clock.now += 23 * 3_600
    assert day.count("key") == 0
    assert day.admit("key", limit=100, cost=1) == 0


def test_without_a_limit_characters_are_counted_too() -> None:
    day = DailyCharacters()
    assert day.admit("key", limit=0, cost=10**9) == 0
    assert day.count("key") == 10**9


def test_a_client_is_an_ipv4_address_or_a_network_of_ipv6() -> None:
    assert client_address("192.0.2.7") == "192.0.2.7"
    assert client_address("::ffff:192.0.2.7") == "192.0.2.7"
    assert client_address("2001:db8:0:1::7") == client_address("2001:db8:0:1:ffff::8") == "2001:db8:0:1::"
    assert client_address("2001:db8:0:2::7") != client_address("2001:db8:0:1::7")
    assert client_address("testclient") == "testclient"
