"""Metrics for Prometheus: requests by endpoint and status, batches, tokens, and what waits."""

from collections.abc import Callable, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

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
            "allyouneed_batch_segments", "Segments in a batch when it finished some of them.", buckets=_SIZES,
            registry=self.registry,
        )  # fmt: skip
        self._batch_seconds = Histogram(
            "allyouneed_batch_duration_seconds",
            "Time that segments were in their batch.",
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
        """A batch of so many segments has finished some of them: their source tokens, and how long they were in it."""
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
