"""The operator's view: a log line for each request, and metrics for Prometheus."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Monitoring:
    """The metrics of a server. Those whose names begin with `libretranslate_` exist in LibreTranslate too."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.status: Literal["starting", "ready", "draining"] = "starting"
        self.durations = Histogram(
            "libretranslate_http_request_duration_seconds", "Time from request to answer.", ["endpoint", "status"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            "libretranslate_http_requests_in_flight", "Requests without an answer yet.", registry=self.registry
        )
        self.queued = Gauge("allyouneed_queued_texts", "Texts accepted and not yet answered.", registry=self.registry)
        self._batches = Histogram(
            "allyouneed_batch_segments", "Segments in a batch.", buckets=_SIZES,
            registry=self.registry,
        )  # fmt: skip
        self._batch_seconds = Histogram(
            "allyouneed_batch_duration_seconds",
            "Time to translate a batch.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._tokens = Counter("allyouneed_source_tokens", "Source tokens translated.", registry=self.registry)
        self.overloads = Counter(
            "allyouneed_overloads", "Requests refused because too many texts were waiting.", registry=self.registry
        )

    def drain(self) -> None:
        """Record that the server is stopping and takes no new requests."""
        self.status = "draining"

    def count_batch(self, segments: int, tokens: int, seconds: float) -> None:
        """Count a translated batch with these numbers of segments and source tokens."""
        self._batches.observe(segments)
        self._batch_seconds.observe(seconds)
        self._tokens.inc(tokens)

    def metrics(self) -> bytes:
        """Write all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class LoadedModels(Collector):
    """The bytes of the weights in memory by pair of languages, as returned by `memory`."""

    def __init__(self, memory: Callable[[], Mapping[Any, int]]) -> None:
        self._memory = memory

    def collect(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "allyouneed_loaded_model_bytes", "Weights of the models in memory, in float32.", labels=["languages"]
        )
        for languages, size in self._memory().items():
            family.add_metric([str(languages)], size)
        return [family]


_LOG = logging.getLogger("allyouneed.apps.serve")


@dataclass(slots=True)
class _Counts:
    """The number of texts that a request asked to translate, and their sizes."""

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


class Middleware:
    """ASGI middleware for requests only: they are passed to `answer`, and everything else to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to `answer`."""
        await (self.answer if scope["type"] == "http" else self.app)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raise NotImplementedError


class RequestLog(Middleware):
    """Adds a log line, metrics and an `X-Request-ID` header for each request."""

    def __init__(self, app: ASGIApp, *, monitoring: Monitoring, log_text: bool) -> None:
        super().__init__(app)
        self._prefix, self._numbers = token_hex(4), count(1)  # processes that share an address have different prefixes
        self._monitoring, self._log_text = monitoring, log_text

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
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

        monitoring = self._monitoring
        monitoring.in_flight.inc()
        try:
            await self.app(scope, receive, send_with_id)
        except Exception:
            status = 500
            raise
        finally:
            _counts.reset(token)
            seconds, endpoint = time.perf_counter() - start, getattr(scope.get("route"), "path", "other")
            monitoring.in_flight.dec()
            # Use the route instead of the path, because there are few routes.
            monitoring.durations.labels(endpoint, str(status)).observe(seconds)
            fields: dict[str, object] = {
                "request_id": request_id, "method": scope["method"], "route": endpoint, "status": status,
                "seconds": round(seconds, 4), "texts": counts.texts, "characters": counts.characters,
            }  # fmt: skip
            if self._log_text:
                fields["text"] = counts.content
            _LOG.info("request", extra={"fields": fields})
