"""Documents that are translated in the background, while their client asks now and then whether they are done."""

import asyncio
import hmac
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ...errors import AllYouNeedError, OutputError
from ...machine.files import write_whole
from .refusals import Refusal

_SWEEP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A translated document that waits to be fetched. `name` is the client's name for it, used only in the answer."""

    path: Path
    name: str
    size: int
    expires: float


class StoredFiles:
    """The translated documents of a server, in a folder that nobody else can read.

    They are kept for `lifetime` seconds, and take at most `max_size` bytes together.
    """

    def __init__(self, *, lifetime: float, max_size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._lifetime, self._max_size, self._clock = lifetime, max_size, clock
        self._files: dict[str, StoredFile] = {}
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def add(self, content: bytes, name: str) -> str:
        """Keep a file, and return its token. Refuses it, with status 503, if there is no room."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._remove_expired()
            if sum(file.size for file in self._files.values()) + len(content) > self._max_size:
                raise Refusal(503, "no room for another translated file; try again later", retry_after=60)
            path = self._write(content)
            self._files[token] = StoredFile(path, name, len(content), self._clock() + self._lifetime)
        return token

    def find(self, token: str) -> StoredFile | None:
        """Find the file with a token; None if it no longer exists."""
        with self._lock:
            self._remove_expired()
            file = self._files.get(token)
            if file is not None and not file.path.exists():  # something has cleaned up the temporary folder
                del self._files[token]
                return None
            return file

    def close(self) -> None:
        """Delete all files and their folder."""
        with self._lock:
            self._files.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    async def sweep(self) -> None:
        """Delete expired files every minute, until the task is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await asyncio.to_thread(self.find, "")

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


_MAX_RUNNING = 64
_FAILURE = "the document could not be translated"


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """A document in translation. `key` is the secret of its client, and `characters` is the number that was charged."""

    key: str
    characters: int
    expires: float
    task: "asyncio.Task[str]"

    @property
    def status(self) -> str:
        """The state of the job: `translating`, `done` or `error`."""
        if not self.task.done():
            return "translating"
        return "error" if self.task.cancelled() or self.task.exception() else "done"

    @property
    def error(self) -> str:
        """The reason why the job failed; "" if it did not."""
        if self.status != "error":
            return ""
        failure = None if self.task.cancelled() else self.task.exception()
        return str(failure) if isinstance(failure, AllYouNeedError) else _FAILURE


class DocumentJobs:
    """The jobs of a server, and the files with their results. A job is forgotten when its result is deleted."""

    def __init__(self, files: StoredFiles, *, lifetime: float) -> None:
        self._files, self._lifetime = files, lifetime
        self._jobs: dict[str, DocumentJob] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [job.task for job in self._jobs.values()]
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, work: Coroutine[Any, Any, tuple[bytes, str]], *, characters: int) -> tuple[str, str]:
        """Start `work`, which makes the content and the name of a file.

        Returns the identifier and the key of the job.
        """
        now = time.monotonic()
        self._jobs = {name: job for name, job in self._jobs.items() if job.expires > now or job.status == "translating"}
        if sum(job.status == "translating" for job in self._jobs.values()) >= _MAX_RUNNING:
            work.close()
            raise Refusal(503, f"{_MAX_RUNNING} documents are being translated already", retry_after=10)
        identifier, key = secrets.token_hex(16), secrets.token_hex(32)
        task = asyncio.create_task(self._finish(work))
        self._jobs[identifier] = DocumentJob(key, characters, now + self._lifetime, task)
        return identifier, key

    def find(self, identifier: str, key: str) -> DocumentJob:
        """Find a job by its identifier and key. Refuses, with status 404, an unknown job or a wrong key."""
        job = self._jobs.get(identifier)
        if job is None or not hmac.compare_digest(job.key.encode(), key.encode()):
            raise Refusal(404, "Document not found")
        return job

    def result(self, job: DocumentJob) -> StoredFile:
        """Return a finished document. Refuses a document that is not ready (503) or no longer exists (404)."""
        if job.status == "error":
            raise Refusal(400, job.error)
        if job.status == "translating":
            raise Refusal(503, "Document is not ready", retry_after=1)
        stored = self._files.find(job.task.result())
        if stored is None:
            raise Refusal(404, "Document not found")
        return stored

    async def _finish(self, work: Coroutine[Any, Any, tuple[bytes, str]]) -> str:
        content, name = await work
        return await asyncio.to_thread(self._files.add, content, name)
