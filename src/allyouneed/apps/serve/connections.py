"""Connections that begin a request and do not go on, or whose headers do not end: these are ended.

So nobody can hold all of a server's connections, or fill its memory.
"""

import asyncio
from typing import Any, cast

import uvicorn

MAX_HEADERS = 2**16  # bytes
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def limit_headers(config: uvicorn.Config, seconds: float) -> None:
    """Let a uvicorn server end a connection that does not send the headers of a request within some seconds.

    One whose headers do not end within `MAX_HEADERS` bytes is answered 431.
    """
    if not config.loaded:
        config.load()
    inner: Any = config.http_protocol_class

    def make_protocol(**arguments: Any) -> asyncio.Protocol:
        return HeaderDeadline(inner(**arguments), seconds)

    config.http_protocol_class = cast(type[asyncio.Protocol], make_protocol)


class HeaderDeadline(asyncio.Protocol):
    """uvicorn's protocol of one connection, `inner`, with a deadline for the headers of each request, and a limit.

    Its bodies have a deadline of their own (`security.BodyLimits`), and between two requests uvicorn's holds.
    """

    def __init__(self, inner: Any, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = 0  # bytes of headers that have not ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        self._transport = transport
        self._inner.connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Pass data on, and see whether a request has begun with it."""
        self._inner.data_received(data)
        self._watch()
        request = self._inner.cycle
        # The rest of a body may come after an answer to its headers.
        self._received += len(data) if request is None or (request.response_complete and not request.more_body) else 0
        if self._received > MAX_HEADERS and self._transport is not None and not self._transport.is_closing():
            cast(asyncio.Transport, self._transport).write(_TOO_LARGE)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return cast(bool | None, self._inner.eof_received())

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()

    def _watch(self) -> None:
        request = self._inner.cycle  # the request whose headers came last
        if request is not None and not request.response_complete:
            self._stop()
        elif self._timer is None and self._transport is not None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._transport.close)

    def _stop(self) -> None:
        self._received = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
