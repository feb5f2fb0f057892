"""Who may ask, and how much: keys, rate limits and bans, one decision for all APIs."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from fastapi import Request

from .keys import ApiKey, KeyFile
from .options import ServeConfig
from .rate_limits import DailyCharacters, MovingWindow, client_address
from .refusals import QUOTA_EXCEEDED, Refusal

_AUTHORIZATION = re.compile(r"(?:DeepL-Auth-Key|Bearer)\s+(\S+)\s*", re.IGNORECASE)
_BAN_SECONDS = 600
_OPEN_REQUESTS_PER_MINUTE = 120  # of one client, where others than this machine can connect
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Client:
    """Who sent a request: a key, or an address without one."""

    address: str
    key: ApiKey | None = None

    @property
    def id(self) -> str:
        """What its requests are counted under."""
        return f"key {self.key.sha256}" if self.key else f"address {self.address}"

    @property
    def account(self) -> str:
        """What its characters are counted under, and its glossaries belong to; clients without a key share one."""
        return self.key.sha256 if self.key else ""


class Access:
    """Admits requests. All counts are in memory: a restarted server begins at 0, and so does each replica."""

    def __init__(self, config: ServeConfig) -> None:
        self._config = config
        self.keys = KeyFile(config.keys) if config.keys else None
        self.key_required = bool(self.keys) and not config.key_optional
        is_open = not is_loopback(config.host)
        self.requests_per_minute = _default(config.requests_per_minute, _OPEN_REQUESTS_PER_MINUTE if is_open else 0)
        self._ban_after = config.ban_after if is_open else 0
        self._requests, self._violations = MovingWindow(60), MovingWindow(_BAN_SECONDS)
        self._characters = DailyCharacters()

    def identify(self, request: Request, key: str = "") -> Client:
        """The client of a request, by the `key` in its fields or in its Authorization header.

        Refuses a banned address, a wrong key, and a missing one where keys are required.
        """
        address = client_address(request.client.host if request.client else "")
        self._refuse_banned(address)
        key = key or key_in_header(request)
        if self.keys is None:
            return Client(address)
        entry = self.keys.find(key) if key else None
        if key and entry is None:
            self._count_violation(address)
            raise Refusal(403, "Invalid API key")
        if entry is None and self.key_required:
            raise Refusal(400, "Please contact the server operator to get an API key")
        return Client(address, entry)

    def charge(self, client: Client, *, cost: int = 1, characters: int = 0) -> None:
        """Count a request of a client: its number of texts, and the characters to translate.

        Refuses what passes a limit with status 429; too many characters as a `QuotaRefusal`.
        """
        limit = (client.key.requests_per_minute if client.key else 0) or self.requests_per_minute
        if limit and cost > limit:
            raise Refusal(400, f"Invalid request: request ({cost}) exceeds text limit ({limit})")
        per_day = client.key.characters_per_day if client.key else 0
        if limit and (wait := self._requests.admit(client.id, limit=limit, cost=cost)):
            self._count_violation(client.address)
            raise Refusal(429, f"Slowdown: {limit} per 1 minute", retry_after=wait)
        if wait := self._characters.admit(client.account, limit=per_day, cost=characters):
            raise QuotaRefusal(429, f"Slowdown: {per_day} characters per 1 day", retry_after=wait)

    def characters_today(self, client: Client) -> int:
        """The characters that a client sent since midnight UTC; those of all clients without a key together."""
        return self._characters.count(client.account)

    def _refuse_banned(self, address: str) -> None:
        if self._ban_after and self._violations.count(address) >= self._ban_after:
            raise Refusal(403, "Too many request limits violations", retry_after=_BAN_SECONDS)

    def _count_violation(self, address: str) -> None:
        if self._ban_after:
            self._violations.admit(address, limit=_UNLIMITED)


class QuotaRefusal(Refusal):
    """The characters of a day are used up."""

    def as_deepl(self) -> Refusal:
        """The same with DeepL's status for it."""
        return Refusal(QUOTA_EXCEEDED, "Quota Exceeded", retry_after=self.retry_after)


def key_in_header(request: Request) -> str:
    """The key of an Authorization header, after `DeepL-Auth-Key` or `Bearer`; "" without one."""
    match = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    return match[1] if match else ""


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address that a server listens on."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def exposure_warnings(config: ServeConfig) -> list[str]:
    """What the operator should know of a server that others than this machine can reach."""
    if is_loopback(config.host):
        return []
    warnings = []
    if not config.keys:
        warnings.append(
            f"everybody who can reach {config.host}, port {config.port}, may translate without a key; "
            f"allyouneed keys add FILE makes one, and --keys FILE requires it"
        )
    if not config.allowed_hosts:
        warnings.append("requests for any host name are answered; --allowed-hosts NAME,… answers only these names")
    return warnings


def _default(value: int, automatic: int) -> int:
    return automatic if value < 0 else value
