"""The settings of a server. Each field is an option of `allyouneed serve` and a variable ALLYOUNEED_SERVE_<NAME>."""

from dataclasses import dataclass

from ..settings import COUNT, COUNT_OR_NONE, Checked, Range, setting

_SECONDS = Range(more_than=0, at_most=86_400)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig(Checked):
    """How to serve models. Times in seconds."""

    host: str = setting("127.0.0.1", "address to listen on; 0.0.0.0: every network of this machine")
    port: int = setting(5000, "port to listen on; 0: any free one", Range(at_least=0, at_most=65_535))

    preload: bool = setting(False, "load every model before the first request; a single one always is")
    max_loaded_memory: int = setting(
        0, "MiB of weights kept in memory; the models used longest ago are unloaded; 0: no limit", COUNT_OR_NONE
    )
    device: str = setting("auto", "where to compute: auto, cpu, cuda or mps")
    precision: str = setting("auto", "number type of the weights: float32, int8 or auto")
    workers: int = setting(0, "batches that are translated at the same time; 0: one for each core", COUNT_OR_NONE)

    max_queue: int = setting(
        1000, "texts accepted and not yet answered; a request beyond them is refused at once", COUNT
    )
    request_timeout: float = setting(60.0, "seconds after which a request is given up", _SECONDS)
    drain_timeout: float = setting(30.0, "seconds that running requests have to finish when the server stops", _SECONDS)

    reload_every: float = setting(
        0.0, "seconds between looks for bundles that changed on disk; 0: only on SIGHUP", Range(at_least=0)
    )
    metrics_token: str = setting("", "what /metrics asks for as a bearer token; empty: nothing")
    log_requests: bool = setting(True, "write a line of JSON for each request to standard error")
    log_text: bool = setting(False, "write the texts of requests to the log")
