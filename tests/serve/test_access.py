"""Who may ask, and how much."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.apps.serve import access
from allyouneed.apps.serve.access import (
    Access,
    DailyCharacters,
    MovingWindow,
    client_address,
    exposure_warnings,
    is_loopback,
)
from allyouneed.apps.serve.keys import add_key
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.errors import ConfigError
from messages import numbers_in
from serve.stub import stub_app

BODY = {"q": "Hello", "source": "en", "target": "it"}


def client(**settings: Any) -> TestClient:
    return TestClient(stub_app(**settings), base_url="http://localhost")


def translate(browser: TestClient, **change: object) -> tuple[int, str]:
    answer = browser.post("/translate", json={**BODY, **change})
    return answer.status_code, answer.json().get("error", "")


def test_the_loopback_has_no_limits_and_an_open_address_has() -> None:
    assert Access(ServeConfig()).requests_per_minute == 0
    assert Access(ServeConfig(host="0.0.0.0")).requests_per_minute == 120
    assert Access(ServeConfig(host="0.0.0.0", requests_per_minute=7)).requests_per_minute == 7
    assert Access(ServeConfig(host="0.0.0.0", requests_per_minute=0)).requests_per_minute == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"])
def test_the_loopback_is_known(host: str) -> None:
    assert is_loopback(host)
    assert exposure_warnings(ServeConfig(host=host)) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "translate.example", ""])
def test_every_other_address_has_warnings(host: str) -> None:
    assert not is_loopback(host)
    assert "key" in exposure_warnings(ServeConfig(host=host))[0]


def test_more_requests_than_the_limit_are_answered_429_with_a_time(tmp_path: Path) -> None:
    with client(requests_per_minute=3) as browser:
        assert [translate(browser)[0] for _ in range(2)] == [200, 200]
        answer = browser.post("/translate", json={**BODY, "q": ["a", "b"]})  # costs two
        assert (answer.status_code, answer.json()) == (429, {"error": "Slowdown: 3 per 1 minute"})
        assert 55 <= int(answer.headers["Retry-After"]) <= 60
        assert translate(browser)[0] == 200
        assert translate(browser)[0] == 429
        deepl = browser.post("/v2/translate", json={"text": ["a"], "target_lang": "IT"})
        assert (deepl.status_code, deepl.json()) == (429, {"message": "Slowdown: 3 per 1 minute"})
        native = browser.post("/v1/translate", json={"texts": ["a"], "source": "en", "target": "it"})
        assert native.status_code == 429


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {**BODY, "target": "xx"}),
        ("/translate", {**BODY, "format": "pdf"}),
        ("/translate", {**BODY, "glossary": {"": "a"}}),
        ("/v1/translate", {"texts": ["a"], "source": "en", "target": "xx"}),
        ("/v1/translate", {"texts": ["a"], "source": "en", "target": "it", "alternatives": 11}),
        ("/v1/sentences", {"texts": ["a"], "source": "en", "target": "xx"}),
        ("/v1/stream", {"text": "a", "source": "en", "target": "xx"}),
        ("/v1/explain", {"text": "a", "source": "en", "target": "xx"}),
    ],
)
def test_a_request_that_is_refused_costs_no_characters(path: str, body: dict[str, object]) -> None:
    with client() as browser:
        assert browser.post(path, json=body).status_code == 400
        assert browser.get("/v2/usage").json()["character_count"] == 0


def test_a_batch_that_no_minute_has_room_for_is_refused_as_too_large() -> None:
    with client(requests_per_minute=3) as browser:
        status, refused = translate(browser, q=["a"] * 4)
        assert (status, numbers_in(refused)) == (400, [4, 3])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/translate"), ("POST", "/detect"), ("POST", "/suggest"), ("POST", "/translate_file"),
        ("POST", "/v1/translate"), ("POST", "/v1/sentences"), ("POST", "/v1/stream"), ("POST", "/v1/explain"),
        ("POST", "/v2/translate"), ("GET", "/v2/languages"),
        ("GET", "/v2/usage"), ("GET", "/v2/glossaries"), ("POST", "/v3/glossaries"),
        ("POST", "/v2/document"), ("POST", "/v2/document/1"), ("POST", "/v2/document/1/result"),
    ],
)  # fmt: skip
def test_without_a_key_nothing_is_translated(tmp_path: Path, method: str, path: str) -> None:
    add_key(tmp_path / "keys", "one")
    settings = {"keys": str(tmp_path / "keys"), "suggestions": str(tmp_path / "suggestions")}
    body = {"texts": ["a"], "text": "a", "source": "en", "target": "it"} if path.startswith("/v1") else {}
    if path in ("/v1/stream", "/v1/explain"):
        del body["texts"]
    elif path in ("/v1/translate", "/v1/sentences"):
        del body["text"]
    with client(**settings) as browser:
        answer = browser.request(method, path, json=body)
    assert answer.status_code == (403 if path.startswith(("/v2", "/v3")) else 400)
    assert "API key" in answer.text


def test_a_key_may_stand_in_the_body_or_in_the_header(tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "one")
    with client(keys=str(tmp_path / "keys")) as browser:
        status, refused = translate(browser)
        assert (status, "API key" in refused) == (400, True)
        assert translate(browser, api_key=key)[0] == 200
        for scheme in ("Bearer", "DeepL-Auth-Key"):
            headers = {"Authorization": f"{scheme} {key}"}
            assert browser.post("/translate", json=BODY, headers=headers).status_code == 200
            assert browser.post("/v1/translate", json={"texts": ["a"], "source": "en", "target": "it"},
                                headers=headers).status_code == 200  # fmt: skip


def test_a_key_has_limits_of_its_own(tmp_path: Path) -> None:
    one = add_key(tmp_path / "keys", "one", requests_per_minute=1)
    other = add_key(tmp_path / "keys", "other", characters_per_day=12)
    with client(keys=str(tmp_path / "keys"), requests_per_minute=5, key_optional=True) as browser:
        assert [translate(browser, api_key=one)[0] for _ in range(2)] == [200, 429]
        assert [translate(browser, api_key=other)[0] for _ in range(2)] == [200, 200]
        answer = browser.post("/translate", json={**BODY, "api_key": other})
        assert (answer.status_code, answer.json()) == (429, {"error": "Slowdown: 12 characters per 1 day"})
        assert 0 < int(answer.headers["Retry-After"]) <= 86_400
        assert [translate(browser)[0] for _ in range(6)] == [200] * 5 + [429]


def test_a_file_of_keys_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="API keys"):
        stub_app(keys=str(tmp_path / "keys"))


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
    monkeypatch.setattr(access, "_MAX_CLIENTS", 10)
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
