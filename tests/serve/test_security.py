"""The guards of a server, as a stranger meets them."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from allyouneed.apps.serve.security import SECURITY_HEADERS, SafeAnswers, host_name
from serve.live import running
from serve.stub import stub_app
from waiting import PATIENCE

BODY = {"q": "Hello", "source": "en", "target": "it"}


def client(base_url: str = "http://localhost", **settings: Any) -> TestClient:
    return TestClient(stub_app(**settings), base_url=base_url, raise_server_exceptions=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(stub_app(max_body=10_000, max_file=20_000)) as url:
        yield url


def speak(url: str, request: bytes, *, then: bytes = b"") -> bytes:
    """What a server answers to these bytes, until it ends the connection."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        connection.sendall(request.replace(b"\n", b"\r\n"))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
            if then:
                connection.sendall(then)
                then = b""
    return answer


@pytest.mark.parametrize("path", ["/languages", "/nothing", "/docs", "/health", "/v2/usage", "/v1/translate", "/"])
def test_every_answer_has_the_security_headers(path: str) -> None:
    with client() as browser:
        answer = browser.get(path)
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "'unsafe" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000", "LOCALHOST."])
def test_a_loopback_server_answers_to_its_names(host: str) -> None:
    with client() as browser:
        assert browser.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:5000", "", "@", "[", "a b"]
)
def test_a_name_that_was_bound_to_the_loopback_is_refused(host: str) -> None:
    with client() as browser:
        answer = browser.post("/translate", json=BODY, headers={"Host": host})
    assert answer.status_code == 421
    assert "does not answer for this host name" in answer.json()["error"]


def test_other_names_are_those_that_the_operator_allows() -> None:
    with client(host="0.0.0.0") as browser:
        assert browser.get("/health", headers={"Host": "any.example"}).status_code == 200
    with client(host="0.0.0.0", allowed_hosts=("translate.example",)) as browser:
        assert browser.get("/health", headers={"Host": "translate.example:443"}).status_code == 200
        assert browser.get("/health", headers={"Host": "any.example"}).status_code == 421
        assert browser.get("/health", headers={"Host": "127.0.0.1:5000"}).status_code == 200  # the check of a container


def test_host_names_are_read_without_port_and_brackets() -> None:
    assert [host_name(host) for host in ("A.b:1", "[::1]:2", "[::1", "a@b", "")] == ["a.b", "::1", "", "b", ""]


def test_pages_of_other_origins_may_call_the_api_without_cookies() -> None:
    with client() as browser:
        preflight = browser.options(
            "/translate", headers={"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
        )
        answer = browser.post("/translate", json=BODY, headers={"Origin": "https://other.example"})
        refused = browser.post("/translate", json={}, headers={"Origin": "https://other.example"})
        for path in ("/", "/metrics", "/v2/usage", "/docs"):
            other = browser.get(path, headers={"Origin": "https://other.example"})
            assert "access-control-allow-origin" not in other.headers, path
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-headers"] == "Authorization, Content-Type"
    for one in (preflight, answer, refused):
        assert one.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in one.headers


@pytest.mark.parametrize("path", ["/suggest", "/v2/glossaries", "/v3/glossaries", "/v2/document"])
def test_pages_of_other_origins_store_nothing_unless_they_are_named(path: str) -> None:
    form = {"name": "mine", "source_lang": "en", "target_lang": "it", "entries": "a\tb", "entries_format": "tsv"}
    with client(cors_origins=("*", "https://one.example")) as browser:
        other = browser.post(path, data=form, headers={"Origin": "https://two.example"})
        one = browser.post(path, data=form, headers={"Origin": "https://one.example"})
        assert len(browser.get("/v3/glossaries").json()["glossaries"]) == (path == "/v2/glossaries")
    assert other.status_code == 403
    assert "may not store" in other.text
    assert "may not store" not in one.text


def test_origins_can_be_limited() -> None:
    with client(cors_origins=("https://one.example",)) as browser:
        one = browser.post("/translate", json=BODY, headers={"Origin": "https://one.example"})
        other = browser.post("/translate", json=BODY, headers={"Origin": "https://two.example"})
    assert one.headers["access-control-allow-origin"] == "https://one.example"
    assert "access-control-allow-origin" not in other.headers


def test_a_body_may_be_as_large_as_the_limit_and_no_larger(url: str) -> None:
    for size, status in [(9_000, 200), (10_001, 413), (100_000, 413)]:
        answer = httpx.post(f"{url}/detect", data={"q": "a" * (size - 2)})
        assert answer.status_code == status
    assert answer.json() == {"error": "Invalid request: the body is larger than 10000 bytes"}


def test_a_body_of_unknown_length_is_counted_as_it_comes(url: str) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(10_000):
            sent += 1_000
            yield b"a" * 1_000

    try:
        answer = httpx.post(f"{url}/translate", content=chunks(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
    except httpx.WriteError:  # the server has ended the connection already
        pass
    assert sent < 10_000_000


def test_a_body_that_stops_arriving_is_given_up() -> None:
    with running(stub_app(body_timeout=0.2)) as url:
        answer = speak(
            url, b"POST /translate HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 100\n\n{"
        )
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 0.2 seconds" in answer


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 5_000, "١"])
def test_a_length_that_is_none_is_refused(url: str, length: str) -> None:
    answer = speak(
        url, f"POST /translate HTTP/1.1\nHost: localhost\nConnection: close\nContent-Length: {length}\n\n".encode()
    )
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413")


def test_an_error_in_the_program_shows_no_text_of_the_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = stub_app()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("cannot translate 'my secret'")

    monkeypatch.setattr(app.state.server.scheduler, "translate", fail)
    with (
        caplog.at_level(logging.DEBUG),
        TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as browser,
    ):
        answer = browser.post("/translate", json={**BODY, "q": "my secret"})
        browser.post("/translate", params={**BODY, "q": "my secret"})
        browser.post("/v1/translate", json={"texts": "my secret", "source": "en", "target": "it"})
    assert answer.status_code == 500
    assert answer.json() == {"error": "an error in the program; the log of the server says more"}
    assert answer.headers["X-Frame-Options"] == "DENY"
    lines = [str(vars(record)) for record in caplog.records if record.name.startswith("allyouneed")]
    assert any("RuntimeError in" in line for line in lines)
    assert not any("secret" in line for line in lines)


@pytest.mark.anyio
async def test_a_request_that_the_end_of_the_server_breaks_off_is_answered_503() -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(60)

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    answering = asyncio.create_task(SafeAnswers(app)({"type": "http", "path": "/translate"}, receive, send))
    await asyncio.sleep(0)
    answering.cancel()
    await answering
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
