"""The settings of a server. Each field is an option of `allyouneed serve` and a variable ALLYOUNEED_SERVE_<NAME>."""

from dataclasses import dataclass

from ...config.settings import COUNT, COUNT_OR_NONE, Checked, Range, setting
from ...errors import ConfigError

_COUNT_OR_AUTO = Range(at_least=-1, at_most=2**31 - 1)
_SECONDS = Range(more_than=0, at_most=86_400)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig(Checked):
    """How to serve models. Times are in seconds."""

    # Limits that no setting changes; a proxy in front of the server can allow less.
    drain_timeout = 30.0  # seconds that running requests have to finish when the server stops
    header_timeout = 10.0  # seconds in which the headers of a request must arrive
    max_body = 2**21  # largest request, in bytes
    body_timeout = 30.0  # seconds in which a body must arrive, and for which a client may stop reading its answer
    max_alternatives = 10  # alternatives of a text
    max_terms = 1_000  # terms in a glossary
    file_lifetime = 3_600.0  # seconds for which a translated document can be fetched
    max_files_size = 500 * 2**20  # bytes of translated documents kept at once
    max_suggestions_size = 100 * 2**20  # largest file of suggestions, in bytes

    host: str = setting("127.0.0.1", "address to listen on; 0.0.0.0: any")
    port: int = setting(5000, "port to listen on; 0: any free one", Range(at_least=0, at_most=65_535))

    max_loaded_memory: int = setting(0, "MiB of weights in memory; 0: no limit", COUNT_OR_NONE)
    device: str = setting("auto", "device: auto, cpu, cuda or mps")
    precision: str = setting("auto", "type of the weights: auto, float32, int8, or bfloat16 on a GPU")
    workers: int = setting(0, "parallel batches; 0: one per core", COUNT_OR_NONE)

    max_queue: int = setting(1000, "queued texts; more are refused", COUNT)
    request_timeout: float = setting(60.0, "maximum seconds per request", _SECONDS)

    keys: str = setting("", "file of API keys (allyouneed keys add FILE --name NAME)")
    key_optional: bool = setting(False, "also serve requests without a key")
    requests_per_minute: int = setting(
        -1,
        "requests per client; 0: no limit; -1: 120, no limit on loopback",
        _COUNT_OR_AUTO,
    )
    max_texts: int = setting(500, "texts per request; 0: no limit", COUNT_OR_NONE)
    max_characters: int = setting(50_000, "characters per text; 0: no limit", COUNT_OR_NONE)
    max_file: int = setting(10 * 2**20, "bytes of a document; 0: no documents", COUNT_OR_NONE)
    suggestions: str = setting("", "file that stores corrections (JSON Lines)")
    glossaries: str = setting("", "file that stores glossaries (SQLite)")
    allowed_hosts: tuple[str, ...] = setting((), "host names of this server")
    cors_origins: tuple[str, ...] = setting(("*",), "origins of web pages that may call the API")

    reload_every: float = setting(
        0.0, "seconds between reloads of changed models; 0: only on SIGHUP", Range(at_least=0)
    )
    log_text: bool = setting(False, "log the texts of requests")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in self.allowed_hosts:
            if "*" in name.removeprefix("*.") and name != "*":
                raise ConfigError(
                    f"allowed_hosts has {name!r}; a name may begin with *., for any name below it, or be just *"
                )
