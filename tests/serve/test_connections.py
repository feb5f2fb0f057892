"""Connections that begin a request and do not go on, or never come to an end."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest
from starlette.types import Receive, Scope, Send

from allyouneed.apps.serve import connections
from serve.live import running
from serve.stub import stub_app
from waiting import PATIENCE, wait_until


def trickle(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"X")
        time.sleep(0.05)


def send_headers(connection: socket.socket, *, size: int) -> None:
    for _ in range(0, size, 2**16):
        connection.sendall(b"X: " + b"a" * 2**16 + b"\r\n")


def read_status(connection: socket.socket) -> int:
    with HTTPResponse(connection) as response:
        response.begin()
        response.read()
        return response.status


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(2**16), b""))


REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def address(url: str) -> tuple[str, int]:
    return "127.0.0.1", urlsplit(url).port or 0


@pytest.fixture(scope="module")
def patient() -> Iterator[tuple[str, int]]:
    """Run a server that waits for headers longer than any test lasts."""
    with running(stub_app(), header_timeout=600) as url:
        yield address(url)


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[str, int]]:
    with running(stub_app(), header_timeout=0.2) as url:
        yield address(url)


@pytest.mark.parametrize("begun", [b"", b"G", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_without_the_headers_of_a_request_is_ended(impatient: tuple[str, int], begun: bytes) -> None:
    with socket.create_connection(impatient, timeout=PATIENCE) as connection:
        connection.sendall(begun)
        assert connection.recv(1000) == b""


def test_bytes_that_trickle_in_do_not_hold_it(impatient: tuple[str, int]) -> None:
    with socket.create_connection(impatient, timeout=PATIENCE) as connection, pytest.raises(ConnectionError):
        trickle(connection)


def test_headers_that_do_not_end_are_refused_before_they_fill_the_memory(patient: tuple[str, int]) -> None:
    with socket.create_connection(patient, timeout=PATIENCE) as connection:
        connection.sendall(REQUEST)  # a request before them changes nothing
        assert read_status(connection) == 200
        with pytest.raises(ConnectionError):
            send_headers(connection, size=2**26)  # far more than the buffers of the system hold


def test_long_headers_that_end_are_read_and_so_is_the_body_of_a_refused_request(patient: tuple[str, int]) -> None:
    long = REQUEST.replace(b"\r\n\r\n", b"\r\nX: " + b"a" * 30_000 + b"\r\n\r\n")
    with socket.create_connection(patient, timeout=PATIENCE) as connection:
        connection.sendall(long)
        assert read_status(connection) == 200
        body = b"a" * 500_000
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n" + body)
        assert read_status(connection) == 404
        connection.sendall(REQUEST)
        assert read_status(connection) == 200


def test_several_requests_may_use_one_connection(impatient: tuple[str, int]) -> None:
    with socket.create_connection(impatient, timeout=PATIENCE) as connection:
        for _ in range(2):
            connection.sendall(REQUEST)
            assert read_status(connection) == 200
            with socket.create_connection(impatient, timeout=PATIENCE) as begun_later:
                assert begun_later.recv(1000) == b""  # its deadline is over; here no request has begun
        connection.sendall(REQUEST[:20])
        assert connection.recv(1000) == b""


CHUNKED = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT_OFF = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
)


class SlowApp:
    """Answers GET / when it may, and anything else with more and more, for as long as the client is there."""

    def __init__(self) -> None:
        self.started, self.may_answer, self.left = threading.Event(), threading.Event(), threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await receive()
        leaving = asyncio.create_task(self._watch(receive))
        self.started.set()
        while scope["path"] == "/" and not (self.may_answer.is_set() or self.left.is_set()):
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while scope["path"] != "/" and not self.left.is_set():
            await send({"type": "http.response.body", "body": b"a" * 2**16, "more_body": True})
        await send({"type": "http.response.body", "body": b"done"})
        leaving.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SlowApp, tuple[str, int]]]:
    monkeypatch.setattr(connections, "_ASK_AGAIN", 0.05)
    app = SlowApp()
    with running(app, header_timeout=600, body_timeout=0.1) as url:
        yield app, address(url)


def test_headers_that_come_before_an_answer_are_limited(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + REQUEST[:-2])
        with pytest.raises(ConnectionError):
            send_headers(connection, size=2**26)
    wait_until(app.left.is_set)


def test_only_some_requests_wait_for_an_answer(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * (connections.MAX_WAITING + 2))
        assert connection.recv(1000) == b""  # nothing that would be read as the answer to the first
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * connections.MAX_WAITING + last)
        app.may_answer.set()
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == connections.MAX_WAITING + 1


@pytest.mark.parametrize("route", [b"/nowhere", b"/translate"])  # answered before its body is there, and after
def test_trailers_that_do_not_end_are_refused(patient: tuple[str, int], route: bytes) -> None:
    with socket.create_connection(patient, timeout=PATIENCE) as connection:
        connection.sendall(CHUNKED.replace(b"/nowhere", route) + b"1\r\na\r\n0\r\n")
        with pytest.raises(ConnectionError):
            send_headers(connection, size=2**26)


def test_a_client_that_does_not_read_its_answer_is_left(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(app.left.is_set)


def test_a_client_that_closes_its_writing_side_gets_its_answer(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        connection.shutdown(socket.SHUT_WR)
        app.started.wait(PATIENCE)
        app.may_answer.set()
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 2


def test_one_that_waits_long_is_asked_whether_it_is_there(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue")
        app.may_answer.set()
        assert read_status(connection) == 200


def test_one_that_has_left_is_noticed(slow: tuple[SlowApp, tuple[str, int]]) -> None:
    app, server = slow
    with socket.create_connection(server, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        app.started.wait(PATIENCE)
    wait_until(app.left.is_set)


def test_a_body_that_is_cut_off_has_no_answer(patient: tuple[str, int]) -> None:
    with socket.create_connection(patient, timeout=PATIENCE) as connection:
        connection.sendall(CUT_OFF)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000) == b""
