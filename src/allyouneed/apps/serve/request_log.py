"""A line of JSON for each request, without its text unless that is wanted, and the metrics of requests."""

import json
import logging
import time
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from secrets import token_hex

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .monitoring import Monitoring

_LOG = logging.getLogger("allyouneed.apps.serve")


@dataclass(slots=True)
class _Counts:
    """What one request asked to be translated."""

    texts: int = 0
    characters: int = 0
    content: list[str] = field(default_factory=list)


_counts: ContextVar[_Counts | None] = ContextVar("counts", default=None)


def count_texts(texts: Sequence[str]) -> None:
    """Count texts for the log line of the request that is being answered, if there is one."""
    if counts := _counts.get():
        counts.texts += len(texts)
        counts.characters += sum(map(len, texts))
        counts.content += texts


class RequestLog:
    """ASGI middleware: a log line, the metrics and a header `X-Request-ID` for each request."""

    def __init__(self, app: ASGIApp, *, monitoring: Monitoring, log_text: bool) -> None:
        self._prefix, self._numbers = token_hex(4), count(1)  # another prefix for each process behind one address
        self._app, self._monitoring, self._log_text = app, monitoring, log_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and write its line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, request_id = time.perf_counter(), f"{self._prefix}-{next(self._numbers)}"
        status = 499  # the client left before an answer
        counts = _Counts()
        token = _counts.set(counts)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        self._monitoring.request_started()
        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            status = 500
            raise
        finally:
            _counts.reset(token)
            seconds = time.perf_counter() - start
            route = scope.get("route")
            endpoint = getattr(route, "path", "other")
            self._monitoring.request_finished(endpoint, status, seconds)
            self._log(
                counts,
                request_id=request_id,
                method=scope["method"],
                route=endpoint,
                status=status,
                seconds=round(seconds, 4),
            )

    def _log(self, counts: _Counts, **fields: object) -> None:
        fields |= {"texts": counts.texts, "characters": counts.characters}
        if self._log_text:
            fields["text"] = counts.content
        _LOG.info("request", extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """A log record as an object of JSON in a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with its time in UTC, level, message, `fields` and, after an error, the traceback."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
