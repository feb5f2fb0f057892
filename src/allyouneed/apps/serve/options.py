"""The settings of a server. Each field is an option of `allyouneed serve` and a variable ALLYOUNEED_SERVE_<NAME>."""

from dataclasses import dataclass

from ...settings import COUNT, COUNT_OR_NONE, Checked, Range, setting

_COUNT_OR_AUTO = Range(at_least=-1, at_most=2**31 - 1)
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

    keys: str = setting("", "file of API keys (allyouneed keys add FILE); with one, requests need a key")
    key_optional: bool = setting(False, "serve requests without a key too; a key then means other limits")
    key_url: str = setting("", "where to get a key, for the answer to requests without one")
    requests_per_minute: int = setting(
        -1,
        "requests of one client in any minute, a batch counting its texts; 0: no limit; "
        "-1: 120, or no limit on the loopback",
        _COUNT_OR_AUTO,
    )
    ban_after: int = setting(
        -1,
        "requests beyond that limit or with wrong keys, after which an address is refused for 10 minutes; 0: never; "
        "-1: 100, or never on the loopback",
        _COUNT_OR_AUTO,
    )
    header_timeout: float = setting(10.0, "seconds in which the headers of a request must arrive", _SECONDS)
    max_body: int = setting(2**21, "greatest size of a request, in bytes", COUNT)
    body_timeout: float = setting(
        30.0,
        "seconds in which the body of a request must arrive, and that a client may stop reading its answer",
        _SECONDS,
    )
    max_texts: int = setting(500, "texts in one request; 0: no limit", COUNT_OR_NONE)
    max_characters: int = setting(50_000, "characters of one text; 0: no limit", COUNT_OR_NONE)
    max_alternatives: int = setting(10, "alternatives of one text", COUNT_OR_NONE)
    max_terms: int = setting(1_000, "terms in a glossary", COUNT_OR_NONE)
    files: bool = setting(True, "translate documents")
    max_file: int = setting(10 * 2**20, "greatest size of a document, in bytes", COUNT)
    file_lifetime: float = setting(3_600.0, "seconds that a translated document can be fetched", _SECONDS)
    max_files_size: int = setting(500 * 2**20, "bytes of translated documents kept at once", COUNT)
    suggestions: str = setting("", "file that corrections are added to (JSON Lines); none: they are refused")
    max_suggestions_size: int = setting(100 * 2**20, "greatest size of that file, in bytes", COUNT)
    glossaries: str = setting("", "file that glossaries made over HTTP are kept in (SQLite); none: in memory")
    allowed_hosts: tuple[str, ...] = setting(
        (), "host names that requests may use; none: those of the loopback if listening there, else any"
    )
    cors_origins: tuple[str, ...] = setting(
        ("*",), "origins whose pages may call the API; *: any, except for storing suggestions, glossaries and documents"
    )

    reload_every: float = setting(
        0.0, "seconds between looks for bundles that changed on disk; 0: only on SIGHUP", Range(at_least=0)
    )
    metrics_token: str = setting("", "what /metrics asks for as a bearer token; empty: nothing")
    log_requests: bool = setting(True, "write a line of JSON for each request to standard error")
    log_text: bool = setting(False, "write the texts of requests to the log")
