"""API keys: a file of their hashes, and the check of a request's key.

A key is 256 random bits, so a plain SHA-256 of it cannot be reversed by guessing, and a slow password hash would only
cost time in each request. The file has hashes, names and limits. The key itself is shown once, when it is made.
"""

import hashlib
import hmac
import os
import re
import secrets
import shlex
import threading
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...errors import ConfigError
from ...machine.files import locked, parse_json, read_whole, to_json, unused, written_whole

_PREFIX = "ayn_"  # lets people and secret scanners recognize a key
_NAME = re.compile(r"[\w.@ -]{1,64}")
_MOST = 2**53


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored in the file. A limit of 0 means the server's limit."""

    name: str
    sha256: str
    created: str
    requests_per_minute: int = 0
    characters_per_day: int = 0


class KeyFile:
    """The keys in a file, which is read again whenever it has changed."""

    def __init__(self, path: str | Path) -> None:
        """Read the keys. Refuses, as a `ConfigError`, a file that does not exist or is not a file of keys."""
        self.path = Path(path)
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._keys: list[ApiKey] = []
        self._refresh()

    def find(self, key: str) -> ApiKey | None:
        """Find the entry of a key; None if there is none. Takes the same time for every key that is not in the file."""
        self._refresh()
        digest, match = hash_key(key), None
        for one in self._keys:
            if hmac.compare_digest(one.sha256, digest):
                match = one
        return match

    def _refresh(self) -> None:
        with self._lock:
            try:
                status = self.path.stat()
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                if stamp != self._stamp:
                    self._keys, self._stamp = read_keys(self.path), stamp
            except (OSError, ConfigError) as error:
                if self._stamp is None:
                    why = error if isinstance(error, ConfigError) else f"{self.path}: {error.strerror}"
                    raise ConfigError(f"the API keys cannot be read: {why}") from error
                self._keys, self._stamp = [], (0, 0, 0)  # no key is accepted until the file can be read again


def hash_key(key: str) -> str:
    """Compute the SHA-256 of a key, in hexadecimal."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> list[ApiKey]:
    """Read the entries of a file of keys. Refuses any other file, as a `ConfigError`."""
    try:
        keys = [ApiKey(**entry) for entry in parse_json(read_whole(path))["keys"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{path} is not a file of API keys; make one with: "
            f"allyouneed keys add {shlex.quote(str(unused(path)))} --name NAME"
        ) from error
    for key in keys:
        _check(path, key)
    return keys


def add_key(path: Path, name: str, *, requests_per_minute: int = 0, characters_per_day: int = 0) -> str:
    """Make a key, add its hash to the file (created if missing), and return the key, which is stored nowhere."""
    key = _PREFIX + secrets.token_urlsafe(32)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    entry = ApiKey(name, hash_key(key), created, requests_per_minute, characters_per_day)
    _check(path, entry)
    with locked(path, what=str(path), wait=True):
        keys = read_keys(path) if path.exists() else []
        if any(other.name == name for other in keys):
            raise ConfigError(f"{path} already has a key named {name!r}; remove it first, or choose another --name")
        _write(path, [*keys, entry])
    return key


def remove_key(path: Path, name: str) -> None:
    """Remove the key with this name from the file. Refuses a name that no key has."""
    with locked(path, what=str(path), wait=True):
        keys = read_keys(path)
        rest = [key for key in keys if key.name != name]
        if len(rest) == len(keys):
            names = ", ".join(repr(key.name) for key in keys) or "none"
            raise ConfigError(f"{path} has no key named {name!r}; its keys: {names}")
        _write(path, rest)


def _write(path: Path, keys: list[ApiKey]) -> None:
    content = to_json({"keys": [asdict(key) for key in keys]}, indent=2) + "\n"
    with written_whole(path) as file:
        os.fchmod(file.fileno(), 0o600)  # before the file has any content
        file.write(content.encode())


def _check(path: Path, key: ApiKey) -> None:
    limits = (key.requests_per_minute, key.characters_per_day)
    if not (isinstance(key.name, str) and _NAME.fullmatch(key.name)):
        raise ConfigError(f"the name of a key has 1 to 64 letters, digits, blanks, or . _ - @; got {key.name!r:.80}")
    if not all(type(limit) is int and 0 <= limit <= _MOST for limit in limits):
        raise ConfigError(f"the limits of key {key.name!r} must be whole numbers of at least 0; got {limits}")
    if not (isinstance(key.sha256, str) and re.fullmatch("[0-9a-f]{64}", key.sha256)):
        raise ConfigError(f"{path}: key {key.name!r} has no SHA-256 of 64 hexadecimal digits")
