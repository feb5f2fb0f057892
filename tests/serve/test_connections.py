"""Connections that begin a request and do not go on."""

import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from serve.live import running
from serve.stub import stub_app


def trickle(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(b"X")
        time.sleep(0.05)


REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with running(stub_app(), header_timeout=0.3) as url:
        yield "127.0.0.1", urlsplit(url).port or 0


@pytest.mark.parametrize("begun", [b"", b"G", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_without_the_headers_of_a_request_is_ended(address: tuple[str, int], begun: bytes) -> None:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(begun)
        assert connection.recv(1000) == b""


def test_bytes_that_trickle_in_do_not_hold_it(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as connection, pytest.raises(ConnectionError):
        trickle(connection)


def test_several_requests_may_use_one_connection(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as connection:
        for _ in range(3):
            connection.sendall(REQUEST)
            assert connection.recv(4000).startswith(b"HTTP/1.1 200")
            time.sleep(0.2)
        connection.sendall(REQUEST[:20])
        assert connection.recv(1000) == b""
