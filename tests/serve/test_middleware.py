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

from allyouneed.apps.serve.middleware import SECURITY_HEADERS, CancelOnDisconnect, SafeAnswers
from messages import numbers_in
from serve.live import running
from serve.stub import stub_app
from waiting import PATIENCE

pytestmark = pytest.mark.anyio
BODY = {"q": "Hello", "source": "en", "target": "it"}


def client(base_url: str = "http://localhost", **settings: Any) -> TestClient:
    return TestClient(stub_app(**settings), base_url=base_url, raise_server_exceptions=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(stub_app(max_body=10_000, max_file=20_000)) as url:
        yield url


def speak(url: str, request: bytes, *, then: bytes = b"") -> bytes:
    """Return a server's answer to these bytes, until it ends the connection."""
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


@pytest.mark.parametrize("host", ["localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000", "LOCALHOST"])
def test_a_loopback_server_answers_to_its_names(host: str) -> None:
    with client() as browser:
        assert browser.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:5000", "", "@", "[", "a b"]
)
def test_a_name_that_was_bound_to_the_loopback_is_refused(host: str) -> None:
    with client() as browser:
        answer = browser.post("/translate", json=BODY, headers={"Host": host})
    assert (answer.status_code, answer.text) == (400, "Invalid host header")


def test_other_names_are_those_that_the_operator_allows() -> None:
    with client(host="0.0.0.0") as browser:
        assert browser.get("/health", headers={"Host": "any.example"}).status_code == 200
    with client(host="0.0.0.0", allowed_hosts=("translate.example",)) as browser:
        assert browser.get("/health", headers={"Host": "translate.example:443"}).status_code == 200
        assert browser.get("/health", headers={"Host": "any.example"}).status_code == 400
        assert browser.get("/health", headers={"Host": "127.0.0.1:5000"}).status_code == 200  # the check of a container


def test_pages_of_other_origins_may_call_the_api_without_cookies() -> None:
    with client() as browser:
        preflight = browser.options(
            "/translate", headers={"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
        )
        answer = browser.post("/translate", json=BODY, headers={"Origin": "https://other.example"})
        refused = browser.post("/translate", json={}, headers={"Origin": "https://other.example"})
    assert preflight.status_code == 200
    assert {"Authorization", "Content-Type"} <= {*preflight.headers["access-control-allow-headers"].split(", ")}
    for one in (preflight, answer, refused):
        assert one.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in one.headers


def test_pages_of_other_origins_read_no_metrics_and_no_glossaries() -> None:
    with client() as browser:
        for path in ("/metrics", "/v2/glossaries", "/v3/glossaries"):
            assert browser.get(path, headers={"Origin": "https://other.example"}).status_code == 403, path
            assert browser.get(path, headers={"Origin": "http://localhost"}).status_code == 200, path
            assert browser.get(path).status_code == 200, path


@pytest.mark.parametrize("path", ["/suggest", "/v2/glossaries", "/v3/glossaries", "/v2/document"])
def test_pages_of_other_origins_store_nothing_unless_they_are_named(path: str) -> None:
    form = {"name": "mine", "source_lang": "en", "target_lang": "it", "entries": "a\tb", "entries_format": "tsv"}
    with client(cors_origins=("*", "https://one.example")) as browser:
        other = browser.post(path, data=form, headers={"Origin": "https://two.example"})
        one = browser.post(path, data=form, headers={"Origin": "https://one.example"})
        assert len(browser.get("/v3/glossaries").json()["glossaries"]) == (path == "/v2/glossaries")
    assert other.status_code == 403
    assert "origin" in other.text
    assert "origin" not in one.text


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
    assert numbers_in(answer.json()["error"]) == [10_000]


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
    with running(stub_app(body_timeout=0)) as url:
        answer = speak(
            url, b"POST /translate HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 100\n\n{"
        )
    assert answer.startswith(b"HTTP/1.1 408")
    assert b" 0 seconds" in answer


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
    assert "log" in answer.json()["error"]
    assert "my secret" not in answer.text
    assert answer.headers["X-Frame-Options"] == "DENY"
    lines = [str(vars(record)) for record in caplog.records if record.name.startswith("allyouneed")]
    assert any("RuntimeError in" in line for line in lines)
    assert not any("secret" in line for line in lines)


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


PART: Message = {"type": "http.request", "body": b"x"}


class Client:
    """The two ends of a connection: what the client sends, and what it gets."""

    def __init__(self, *messages: Message) -> None:
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: list[Message] = []
        for message in messages:
            self.incoming.put_nowait(message)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def test_a_client_that_leaves_cancels_its_request() -> None:
    client, cancelled, reading = Client(PART), asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert await receive() == PART
        reading.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    answering = asyncio.create_task(CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send))
    await reading.wait()
    client.incoming.put_nowait({"type": "http.disconnect"})
    await answering  # ends as if it had been answered
    assert cancelled.is_set()
    assert client.sent == []


@pytest.mark.parametrize("route", ["/translate", "/translate_file", "/v1/translate", "/v2/translate"])
@pytest.mark.parametrize(
    ("kind", "begun"),
    [
        ("application/json", b'{"q"'),
        ("multipart/form-data; boundary=b", b"--b"),
        ("application/x-www-form-urlencoded", b"q=a"),
    ],
)
async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(
    route: str, kind: str, begun: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client({"type": "http.request", "body": begun, "more_body": True}, {"type": "http.disconnect"})
    scope = {
        "type": "http", "method": "POST", "path": route, "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", kind.encode())],
    }  # fmt: skip
    app = stub_app()
    with caplog.at_level(logging.INFO, "allyouneed.apps.serve"):
        await app(scope, client.incoming.get, client.send)
    assert client.sent == []
    assert [record.fields["status"] for record in caplog.records] == [499]  # type: ignore[attr-defined]


async def test_a_request_that_is_cancelled_otherwise_stays_cancelled() -> None:
    client, reading = Client(PART), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        reading.set()
        await asyncio.sleep(60)

    answering = asyncio.create_task(CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send))
    await reading.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering


async def test_an_answer_is_sent_while_the_client_stays() -> None:
    client = Client({**PART, "more_body": True}, PART)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["more_body"]
        assert await receive() == PART
        await send({"type": "http.response.start"})

    await CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send)
    assert client.sent == [{"type": "http.response.start"}]


@pytest.fixture(scope="module")
def connection() -> Iterator[httpx.Client]:
    with running(stub_app()) as url, httpx.Client(base_url=url) as connection:
        yield connection


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/health", "/languages", "/spec", "/docs", "/nowhere"])
def test_head_has_the_status_and_the_headers_of_get_and_no_body(connection: httpx.Client, path: str) -> None:
    get, head = connection.get(path), connection.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for name in ("Content-Type", "Content-Length", "ETag", "Content-Security-Policy"):
        assert head.headers.get(name) == get.headers.get(name)


def test_a_route_without_get_refuses_head(connection: httpx.Client) -> None:
    assert connection.head("/translate").status_code == connection.get("/translate").status_code == 405
