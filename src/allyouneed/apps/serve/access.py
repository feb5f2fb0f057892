"""Limit who may send requests, and how many: keys, and rate limits for each client, for all APIs."""

import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from fastapi import Request

from .keys import ApiKey, KeyFile
from .options import ServeConfig
from .refusals import QuotaRefusal, Refusal

_AUTHORIZATION = re.compile(r"(?:DeepL-Auth-Key|Bearer)\s+(\S+)\s*", re.IGNORECASE)
_OPEN_REQUESTS_PER_MINUTE = 120  # of one client, if other machines can connect


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request: a key or, without one, an address."""

    address: str
    key: ApiKey | None = None

    @property
    def id(self) -> str:
        """The name under which requests are counted."""
        return f"key {self.key.sha256}" if self.key else f"address {self.address}"

    @property
    def account(self) -> str:
        """The name under which characters are counted and glossaries kept. Clients without a key share one account."""
        return self.key.sha256 if self.key else ""


class Access:
    """Admits requests. All counts are in memory, so they start at 0 after a restart, and each replica has its own."""

    def __init__(self, config: ServeConfig) -> None:
        self._config = config
        self.keys = KeyFile(config.keys) if config.keys else None
        self.key_required = bool(self.keys) and not config.key_optional
        is_open = not is_loopback(config.host)
        automatic, chosen = _OPEN_REQUESTS_PER_MINUTE if is_open else 0, config.requests_per_minute
        self.requests_per_minute = automatic if chosen < 0 else chosen
        self._requests = MovingWindow(60)
        self._characters = DailyCharacters()

    def identify(self, request: Request, key: str = "") -> Client:
        """Identify the client of a request, by the `key` in its fields or by the Authorization header.

        Refuses a wrong key, and a missing key if keys are required.
        """
        address = client_address(request.client.host if request.client else "")
        key = key or key_in_header(request)
        if self.keys is None:
            return Client(address)
        entry = self.keys.find(key) if key else None
        if key and entry is None:
            raise Refusal(403, "Invalid API key")
        if entry is None and self.key_required:
            raise Refusal(400, "Please contact the server operator to get an API key")
        return Client(address, entry)

    def charge(self, client: Client, *, cost: int = 1, characters: int = 0) -> None:
        """Count a request of a client: its number of texts, and the characters to translate.

        Refuses a request over the limit with status 429, and too many characters as a `QuotaRefusal`.
        """
        limit = (client.key.requests_per_minute if client.key else 0) or self.requests_per_minute
        if limit and cost > limit:
            raise Refusal(400, f"Invalid request: request ({cost}) exceeds text limit ({limit})")
        per_day = client.key.characters_per_day if client.key else 0
        if limit and (wait := self._requests.admit(client.id, limit=limit, cost=cost)):
            raise Refusal(429, f"Slowdown: {limit} per 1 minute", retry_after=wait)
        if wait := self._characters.admit(client.account, limit=per_day, cost=characters):
            raise QuotaRefusal(429, f"Slowdown: {per_day} characters per 1 day", retry_after=wait)

    def characters_today(self, client: Client) -> int:
        """Return the characters that a client has sent since midnight UTC.

        Clients without a key are counted together.
        """
        return self._characters.count(client.account)


def key_in_header(request: Request) -> str:
    """Read the key in an Authorization header, after `DeepL-Auth-Key` or `Bearer`; "" if there is none."""
    match = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    return match[1] if match else ""


def is_loopback(host: str) -> bool:
    """Return True if only this machine can connect to an address that a server listens on."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def exposure_warnings(config: ServeConfig) -> list[str]:
    """Warn the operator if other machines can reach the server."""
    if is_loopback(config.host):
        return []
    warnings = []
    if not config.keys:
        warnings.append(
            f"everybody who can reach {config.host}, port {config.port}, may translate without a key; "
            f"allyouneed keys add FILE --name NAME makes one, and --keys FILE requires it"
        )
    if not config.allowed_hosts:
        warnings.append("requests for any host name are answered; --allowed-hosts NAME,… answers only these names")
    return warnings


_MAX_CLIENTS = 50_000  # remembered at once; the client that has been quiet the longest is forgotten first
_DAY = 86_400


@dataclass(slots=True)
class _History:
    """A client's requests within the time window, (time, cost) each, and the sum of their costs."""

    requests: deque[tuple[float, int]] = field(default_factory=deque)
    total: int = 0


class MovingWindow:
    """Admits a client's costs as long as their sum in the last `seconds` stays within a limit."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._clients: OrderedDict[str, _History] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, client: str, *, limit: int, cost: int = 1) -> float:
        """Count the cost and return 0 if it is admitted; otherwise return the seconds until it would be."""
        now = self._clock()
        with self._lock:
            history = self._current(client, now)
            if history.total + cost <= limit:
                history.requests.append((now, cost))
                history.total += cost
                return 0.0
            excess = history.total + cost - limit
            for when, spent in history.requests:
                excess -= spent
                if excess <= 0:
                    return max(when + self.seconds - now, 0.001)
            return self.seconds

    def count(self, client: str) -> int:
        """Return the sum of a client's costs within the window."""
        with self._lock:
            return self._current(client, self._clock()).total if client in self._clients else 0

    def _current(self, client: str, now: float) -> _History:
        history = self._clients.setdefault(client, _History())
        self._clients.move_to_end(client)
        while history.requests and history.requests[0][0] <= now - self.seconds:
            history.total -= history.requests.popleft()[1]
        while len(self._clients) > _MAX_CLIENTS:
            self._clients.popitem(last=False)
        return history


class DailyCharacters:
    """Counts the characters of each client. Counts start at 0 at midnight UTC and when the server starts."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._day, self._counts = 0, dict[str, int]()

    def admit(self, client: str, *, limit: int, cost: int) -> float:
        """Count the characters and return 0 if they are admitted; otherwise return the seconds to midnight.

        A `limit` of 0 admits everything.
        """
        now = self._clock()
        with self._lock:
            self._begin_day(now)
            used = self._counts.get(client, 0)
            if limit and used + cost > limit:
                return _DAY - now % _DAY
            self._counts[client] = used + cost
            return 0.0

    def count(self, client: str) -> int:
        """Return the characters of a client today."""
        with self._lock:
            self._begin_day(self._clock())
            return self._counts.get(client, 0)

    def _begin_day(self, now: float) -> None:
        if self._day != (today := int(now // _DAY)):
            self._day, self._counts = today, {}


def client_address(host: str) -> str:
    """Return the part of an address that identifies a client.

    Of an IPv6 address this is the first 64 bits, because a client can vary the rest. Anything else, such as the name of
    a Unix socket, is returned as it is.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))
