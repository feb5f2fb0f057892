"""Connections that begin a request and do not go on, or never come to an end."""

import socket
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest

from serve.live import running
from serve.stub import stub_app
from waiting import PATIENCE


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


REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def address(url: str) -> tuple[str, int]:
    return "127.0.0.1", urlsplit(url).port or 0


@pytest.fixture(scope="module")
def patient() -> Iterator[tuple[str, int]]:
    """A server that waits for headers longer than any test lasts."""
    with running(stub_app(), header_timeout=600) as url:
        yield address(url)


@pytest.fixture(scope="module")
def impatient() -> Iterator[tuple[str, int]]:
    with running(stub_app(), header_timeout=0.5) as url:
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
