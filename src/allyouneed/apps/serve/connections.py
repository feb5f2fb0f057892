"""Limits on connections, so that nobody can occupy all connections of a server, or fill its memory.

The limits are on the time for headers to arrive, on bytes that belong to no request or come too early, and on the time
that a client takes to read its answer.
"""

import asyncio
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEADERS = 2**16  # bytes in headers or trailers, and in everything that comes before a request has its answer
MAX_WAITING = 16  # requests sent before an earlier request has its answer
_ASK_AGAIN = 1.0  # seconds between checks of a client that sends no more
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def limit_connections(config: uvicorn.Config, *, header_timeout: float, body_timeout: float) -> None:
    """Make a uvicorn server close connections whose headers take too long, or whose client does not read for too long.

    Times are in seconds. Headers of more than `MAX_HEADERS` bytes are answered with 431.
    """
    if not config.loaded:
        config.load()
    protocol = partial(LimitedConnection, header_timeout=header_timeout, body_timeout=body_timeout)
    config.http_protocol_class = cast(type[asyncio.Protocol], protocol)


class LimitedConnection(HttpToolsProtocol):
    """uvicorn's protocol of a connection, with limits. Also answers clients that have closed their writing side.

    Bodies have a deadline of their own (`middleware.BodyLimits`); between two requests uvicorn's deadline holds.
    """

    def __init__(self, *arguments: Any, header_timeout: float, body_timeout: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_timeout, self._body_timeout = header_timeout, body_timeout
        self._unasked = 0  # bytes outside any request's body, or in headers that have not ended
        # The request being answered; `cycle` is the request with the latest headers.
        self._answered: RequestResponseCycle | None = None
        self._headers_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self._presence_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Read data. Closes the connection if too much of the data was not expected."""
        self._unasked += len(data)
        super().data_received(data)
        if self._unasked > MAX_HEADERS and not self.transport.is_closing():
            if not self._is_answering:
                self.transport.write(_TOO_LARGE)
            self.transport.close()
        self._await_headers()

    def on_headers_complete(self) -> None:
        """Begin a request, or let it wait for its turn. Not too many may wait."""
        super().on_headers_complete()
        if not self.pipeline:
            self._unasked, self._answered = 0, self.cycle
        elif len(self.pipeline) > MAX_WAITING:
            raise ConnectionError("too many requests before an answer")  # the parser stops and calls the method below

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not a request, unless the client would take this for the answer to another request."""
        if self._is_answering:
            self.transport.close()
        else:
            super().send_400_response(msg)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body of the latest request.

        The limits on time and size start to count when the server begins to handle this request.
        """
        super().on_body(body)
        if not self.pipeline:
            self._unasked = 0

    def on_response_complete(self) -> None:
        """Continue with the next request."""
        self._unasked = 0
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer the requests that have arrived completely, although no more can come."""
        if not self._is_answering or self.cycle.more_body:
            return False  # closes the connection
        self.cycle.keep_alive = False
        if self._presence_timer is None:
            self._presence_timer = self.loop.call_later(_ASK_AGAIN, self._ask_for_presence)
        return True

    def pause_writing(self) -> None:
        """Wait until the client reads again, but not forever."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(self._body_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Resume writing."""
        super().resume_writing()
        _stop(self._reading_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting, and tell the request that is being answered; uvicorn would only tell the latest request."""
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        for timer in (self._headers_timer, self._reading_timer, self._presence_timer):
            _stop(timer)
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_headers(self) -> None:
        if self._is_answering:
            _stop(self._headers_timer)
            self._headers_timer = None
        elif self._headers_timer is None:
            self._headers_timer = self.loop.call_later(self._header_timeout, self.transport.close)

    def _ask_for_presence(self) -> None:
        """Check whether a client that sends no more still reads. Only by sending it bytes can one find out."""
        if self._is_answering and not self.transport.is_closing():
            if not (self.pipeline or self.cycle.response_started or self.cycle.scope["http_version"] == "1.0"):
                self.transport.write(_CONTINUE)  # clients skip this, however often it comes
            self._presence_timer = self.loop.call_later(_ASK_AGAIN, self._ask_for_presence)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
