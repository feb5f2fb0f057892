"""What the operator sees: a log line of each request, and metrics for Prometheus."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Monitoring:
    """The metrics of one server. Those that begin with `libretranslate_` have the names that LibreTranslate uses."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.status: Literal["starting", "ready", "draining"] = "starting"
        self._durations = Histogram(
            "libretranslate_http_request_duration_seconds", "Time from request to answer.", ["endpoint", "status"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self._in_flight = Gauge(
            "libretranslate_http_requests_in_flight", "Requests without an answer yet.", registry=self.registry
        )
        self._queued = Gauge("allyouneed_queued_texts", "Texts accepted and not yet answered.", registry=self.registry)
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
        self._overloads = Counter(
            "allyouneed_overloads", "Requests refused because too many texts were waiting.", registry=self.registry
        )

    def drain(self) -> None:
        """The server stops: it takes no new requests."""
        self.status = "draining"

    def request_started(self) -> None:
        """A request came in."""
        self._in_flight.inc()

    def request_finished(self, endpoint: str, status: int, seconds: float) -> None:
        """It was answered. `endpoint` is the route, not the path, so that there are few."""
        self._in_flight.dec()
        self._durations.labels(endpoint, str(status)).observe(seconds)

    def count_batch(self, segments: int, tokens: int, seconds: float) -> None:
        """A batch of so many segments and source tokens was translated."""
        self._batches.observe(segments)
        self._batch_seconds.observe(seconds)
        self._tokens.inc(tokens)

    def count_overload(self) -> None:
        """A request was refused because too many texts were waiting."""
        self._overloads.inc()

    def watch_queue(self, texts: Callable[[], int]) -> None:
        """Ask `texts` for the number of waiting texts whenever the metrics are read."""
        self._queued.set_function(texts)

    def watch_models(self, memory: Callable[[], Mapping[str, int]]) -> None:
        """Ask `memory` for the bytes of the weights in memory, by pair of languages, whenever the metrics are read."""
        self.registry.register(_LoadedModels(memory))

    def metrics(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class _LoadedModels(Collector):
    def __init__(self, memory: Callable[[], Mapping[str, int]]) -> None:
        self._memory = memory

    def collect(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "allyouneed_loaded_model_bytes", "Weights of the models in memory, in float32.", labels=["languages"]
        )
        for languages, size in self._memory().items():
            family.add_metric([languages], size)
        return [family]


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
