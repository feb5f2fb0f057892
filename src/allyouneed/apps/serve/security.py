"""What guards every request and every answer: host names, the size and the speed of bodies, headers, origins.

Pure ASGI, so that nothing is read before it is checked and streams pass through.
"""

import asyncio
import logging
import time
import traceback
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import is_loopback
from .options import ServeConfig
from .refusals import Refusal, error_response

_LOGGED_FRAMES = 8  # of an error, the innermost ones
_LOG = logging.getLogger("allyouneed.apps.serve")

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
UPLOAD_PATHS = ("/translate_file", "/v2/document")
# Paths that a page of another origin may call. Those that store what they get are not among them.
CORS_PATHS = ("/translate", "/detect", "/languages", "/translate_file", "/frontend/settings", "/health", "/spec")
CORS_PREFIXES = ("/download_file/", "/v1/")
WRITING_PATHS = ("/suggest", "/v2/document")
WRITING_PREFIXES = ("/v2/glossaries", "/v3/glossaries")

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


def guard_requests(app: FastAPI, config: ServeConfig) -> None:
    """Let only requests in that name this server, come from an origin that may send them, and are not too large."""
    app.add_middleware(BodyLimits, config=config)
    app.add_middleware(CrossOrigin, config=config)
    app.add_middleware(KnownHosts, config=config)


def safe_answers(app: FastAPI) -> None:
    """Add the security headers to every answer, and tell nothing of errors in the program."""
    app.add_middleware(SafeAnswers)


class SafeAnswers:
    """Adds the security headers to every answer, and answers an error in the program without its text.

    The log has the type of the error and where it arose, but not its message, which may quote a request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
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
                raise ConnectionError("the answer had begun when its making failed") from None
            await error_response(scope["path"], 500, "an error in the program; the log of the server says more")(
                scope, receive, send_guarded
            )


class KnownHosts:
    """Refuses host names that are not this server's: a page cannot reach a loopback server by a name of its own.

    Such a page could else make its name mean 127.0.0.1 (DNS rebinding), and read the answers as those of its origin.
    The names of the loopback itself are always answered: programs on this machine ask whether the server is well.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app = app
        names = config.allowed_hosts or (() if is_loopback(config.host) else ("*",))
        self.names = frozenset(name.lower().strip("[]") for name in (*names, *LOOPBACK_NAMES, config.host))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or "*" in self.names:
            await self.app(scope, receive, send)
            return
        if host_name(Headers(scope=scope).get("host", "")) in self.names:
            await self.app(scope, receive, send)
            return
        await error_response(
            scope["path"], 421, "this server does not answer for this host name; its operator may allow it"
        )(scope, receive, send)


class CrossOrigin:
    """Lets pages of other origins call the API (CORS), without cookies, of which there are none.

    Answers name the origins of `config.cors_origins`, by default "*", on the paths of the API alone. A request that
    stores something must come from a page of this server or of an origin that is named, or from no page at all.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.origins = app, config.cors_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None or _is_same_origin(origin, headers.get("host", "")):
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        named = origin in self.origins
        is_writing = path in WRITING_PATHS or path.startswith(WRITING_PREFIXES)
        if is_writing and not named:
            await error_response(path, 403, "pages of other origins may not store anything here")(scope, receive, send)
            return
        is_api = path in CORS_PATHS or path.startswith(CORS_PREFIXES) or is_writing
        allowed = origin if named else "*" if "*" in self.origins else ""
        if not (is_api and allowed):
            await self.app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _answer_preflight(send, allowed)
            return

        async def send_allowed(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer["Access-Control-Allow-Origin"] = allowed
                answer["Access-Control-Expose-Headers"] = "Retry-After, Content-Disposition"
                answer.add_vary_header("Origin")
            await send(message)

        await self.app(scope, receive, send_allowed)


class BodyLimits:
    """Refuses a body that is too large (413), as soon as it is, and one that comes too slowly (408).

    A body without a Content-Length counts as it comes in.
    """

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        config = self.config
        limit = config.max_file + 2**16 if scope["path"] in UPLOAD_PATHS else config.max_body  # + fields and borders
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > limit:
            await error_response(scope["path"], 413, _too_large(limit), headers={"Connection": "close"})(
                scope, receive, send
            )
            return
        received, deadline, is_complete = 0, time.monotonic() + config.body_timeout, False

        async def receive_limited() -> Message:
            nonlocal received, is_complete
            if is_complete:  # waits for the client to leave, which is no body
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


def host_name(host: str) -> str:
    """The name in a Host header, in lower case, without its port and without the brackets of an IPv6 address."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_same_origin(origin: str, host: str) -> bool:
    return origin.partition("://")[2].lower() == host.lower()


async def _answer_preflight(send: Send, allowed: str) -> None:
    headers = {
        "Access-Control-Allow-Origin": allowed,
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": "86400",
        "Content-Length": "0",
        "Vary": "Origin",
    }
    start = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 204, "headers": start})
    await send({"type": "http.response.body"})


def _too_large(limit: int) -> str:
    return f"Invalid request: the body is larger than {limit} bytes"
