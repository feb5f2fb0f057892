"""How often a client may ask: a moving window of costs for each client, and characters for each day."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

_MAX_CLIENTS = 50_000  # remembered at once; the one that was quiet longest is forgotten first
_DAY = 86_400


@dataclass(slots=True)
class _History:
    """What one client did within the window: (time, cost) of its requests, and the sum of the costs."""

    requests: deque[tuple[float, int]] = field(default_factory=deque)
    total: int = 0


class MovingWindow:
    """Admits costs of each client as long as those within the last `seconds` do not pass a limit."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._clients: OrderedDict[str, _History] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, client: str, *, limit: int, cost: int = 1) -> float:
        """0 if the cost is admitted, and then it is counted; else the seconds until it would be."""
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
        """The costs of a client within the window."""
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
    """Counts the characters of each client; every count begins at 0 at midnight UTC and when the server starts."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._day, self._counts = 0, dict[str, int]()

    def admit(self, client: str, *, limit: int, cost: int) -> float:
        """0 if the characters are admitted (`limit` 0: always), and then they are counted; else seconds to midnight."""
        now = self._clock()
        with self._lock:
            self._begin_day(now)
            used = self._counts.get(client, 0)
            if limit and used + cost > limit:
                return _DAY - now % _DAY
            self._counts[client] = used + cost
            return 0.0

    def count(self, client: str) -> int:
        """The characters of a client today."""
        with self._lock:
            self._begin_day(self._clock())
            return self._counts.get(client, 0)

    def _begin_day(self, now: float) -> None:
        if self._day != (today := int(now // _DAY)):
            self._day, self._counts = today, {}


def client_address(host: str) -> str:
    """What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, which one client can vary.

    An address that is none, as that of a Unix socket, is a client of its own.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))
