"""Translated documents that wait to be fetched, each by a random token and for a limited time.

They lie in a private temporary folder under names that no request chooses.
"""

import asyncio
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...errors import OutputError
from ...files import write_whole
from .refusals import Refusal

_SWEEP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A translated document that waits to be fetched. `name` is what the client calls it, for the answer only."""

    path: Path
    name: str
    size: int
    expires: float


class StoredFiles:
    """The translated documents of one server, in a folder of its own that nobody else can read.

    They last `lifetime` seconds, and take at most `max_size` bytes together.
    """

    def __init__(self, *, lifetime: float, max_size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._lifetime, self._max_size, self._clock = lifetime, max_size, clock
        self._files: dict[str, StoredFile] = {}
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._sweeping: asyncio.Task[None] | None = None

    def add(self, content: bytes, name: str) -> str:
        """Keep a file, and return its token. Refuses, with status 503, what there is no room for."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._remove_expired()
            if sum(file.size for file in self._files.values()) + len(content) > self._max_size:
                raise Refusal(503, "no room for another translated file; try again later", retry_after=60)
            path = self._write(content)
            self._files[token] = StoredFile(path, name, len(content), self._clock() + self._lifetime)
        return token

    def find(self, token: str) -> StoredFile | None:
        """The file with a token; None if there is none any more."""
        with self._lock:
            self._remove_expired()
            file = self._files.get(token)
            if file is not None and not file.path.exists():  # something has cleaned the temporary folder
                del self._files[token]
                return None
            return file

    async def __aenter__(self) -> Self:
        """Delete expired files every minute, until the block ends; then all of them."""
        self._sweeping = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping
        self.close()

    def remove_expired(self) -> None:
        """Delete the files whose time is over."""
        with self._lock:
            self._remove_expired()

    def close(self) -> None:
        """Delete all files and their folder."""
        with self._lock:
            self._files.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await asyncio.to_thread(self.remove_expired)

    def _write(self, content: bytes) -> Path:
        try:
            if self._folder is None or not self._folder.is_dir():
                self._folder = Path(tempfile.mkdtemp(prefix="allyouneed-"))  # mode 0700
            path = self._folder / secrets.token_hex(16)
            write_whole(path, content)
        except OSError as error:
            raise OutputError(f"a translated document could not be written: {error}") from error
        return path

    def _remove_expired(self) -> None:
        now = self._clock()
        for token in [token for token, file in self._files.items() if file.expires <= now]:
            self._files.pop(token).path.unlink(missing_ok=True)
