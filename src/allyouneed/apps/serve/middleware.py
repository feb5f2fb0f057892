"""All processing between a connection and the routes: host names, origins, body limits, headers, disconnects.

This is pure ASGI, so that nothing is read before it is checked, and streams pass through.
"""

import asyncio
import logging
import time
import traceback
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import is_loopback
from .monitoring import Middleware, Monitoring, RequestLog
from .options import ServeConfig
from .refusals import Refusal, error_response

_LOGGED_FRAMES = 8  # of an error, the innermost ones
_LOG = logging.getLogger("allyouneed.apps.serve")

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
UPLOAD_PATHS = ("/translate_file", "/v2/document")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def add_middleware(app: FastAPI, config: ServeConfig, monitoring: Monitoring) -> None:
    """Add everything in this file, and Starlette's checks of host names and origins, to the requests of `app`.

    A server on the loopback address answers only for its own names. Otherwise a web page could make a host name of its
    own point to 127.0.0.1 (DNS rebinding), and read the answers as if they came from its own origin. The names of the
    loopback address are always answered, because programs on this machine check the server's health. Keys are in
    headers and fields, never in cookies, so CORS may allow any origin; `server_state.OwnPages` guards requests that
    store something.
    """
    hosts = config.allowed_hosts or (() if is_loopback(config.host) else ("*",))
    address = f"[{config.host}]" if ":" in config.host else config.host
    # The middleware added last sees a request first.
    app.add_middleware(CancelOnDisconnect)
    app.add_middleware(BodyLimits, config=config)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=config.cors_origins,
        allow_methods=["*"],
        allow_headers=["Authorization", "Content-Type"],
        expose_headers=["Retry-After", "Content-Disposition"],
        max_age=86_400,
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*hosts, *LOOPBACK_NAMES, address], www_redirect=False)
    app.add_middleware(RequestLog, monitoring=monitoring, log_text=config.log_text)
    app.add_middleware(SafeAnswers)
    app.add_middleware(AnswerHead)


class AnswerHead(Middleware):
    """Makes the application answer HEAD like GET; uvicorn sends only the headers."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, send)


class SafeAnswers(Middleware):
    """Adds the security headers to every answer, and hides the text of an error in the program.

    The log has the type of the error and its place in the program, but not its message, which may quote a request.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_guarded)
        except asyncio.CancelledError:  # the server stops, and the request has had its time to finish
            if started:
                raise
            await error_response(
                scope["path"], 503, "the server stops", retry_after=1, headers={"Connection": "close"}
            )(scope, receive, send_guarded)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-_LOGGED_FRAMES:]
            where = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
            _LOG.error("%s in %s", type(error).__name__, where)
            if started:
                raise ConnectionError("making the answer failed after it had begun") from None
            await error_response(scope["path"], 500, "an error in the program; the log of the server says more")(
                scope, receive, send_guarded
            )


class BodyLimits(Middleware):
    """Refuses a body that is too large (413), as soon as that is known, and a body that arrives too slowly (408).

    A body without a Content-Length is counted as it arrives.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        super().__init__(app)
        self.config = config

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        config = self.config
        # Fields and borders of a form are added.
        limit = config.max_file + 2**16 if scope["path"] in UPLOAD_PATHS else config.max_body
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > limit:
            await error_response(scope["path"], 413, _too_large(limit), headers={"Connection": "close"})(
                scope, receive, send
            )
            return
        received, deadline, is_complete = 0, time.monotonic() + config.body_timeout, False

        async def receive_limited() -> Message:
            nonlocal received, is_complete
            if is_complete:  # waits for the client to leave
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise Refusal(
                    408, f"the body of the request did not arrive within {config.body_timeout:g} seconds", close=True
                ) from None
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                is_complete = not message.get("more_body", False)
                if received > limit:
                    raise Refusal(413, _too_large(limit), close=True)
            return message

        await self.app(scope, receive_limited, send)


class CancelOnDisconnect(Middleware):
    """Cancels the work on a request when its client disconnects, so that its texts leave the queue."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, watcher = asyncio.current_task(), None
        assert request is not None
        gone = asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            request.cancel()

        async def receive_body() -> Message:
            nonlocal watcher
            if watcher is not None:  # the body has been read, so nothing more will come
                await gone.wait()
                return {"type": "http.disconnect"}
            message = await receive()
            if message["type"] == "http.disconnect":  # in the middle of the body
                gone.set()
                request.cancel()
                await asyncio.sleep(0)  # raises the cancellation
            elif not message.get("more_body"):
                watcher = asyncio.create_task(watch())
            return message

        try:
            await self.app(scope, receive_body, send)
        except asyncio.CancelledError:
            if not gone.is_set():
                raise
            request.uncancel()
        finally:
            if watcher is not None:
                watcher.cancel()


def _too_large(limit: int) -> str:
    return f"Invalid request: the body is larger than {limit} bytes"
