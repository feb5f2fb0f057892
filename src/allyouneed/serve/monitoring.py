"""What a server says about itself: metrics for Prometheus, and a log line for each request."""

from prometheus_client import CollectorRegistry


class Monitoring:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.draining = False  # after SIGTERM: no new requests
