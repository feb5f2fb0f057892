"""Documents that are translated in the background while their client asks from time to time whether they are done."""

import asyncio
import hmac
import secrets
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from ...errors import AllYouNeedError
from .refusals import Refusal
from .stored_files import StoredFile, StoredFiles

_MAX_RUNNING = 64
_FAILURE = "the document could not be translated"


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """One document: `key` is the secret of its client; `characters` are those that were counted."""

    key: str
    characters: int
    expires: float
    task: "asyncio.Task[str]"

    @property
    def status(self) -> str:
        """`translating`, `done` or `error`."""
        if not self.task.done():
            return "translating"
        return "error" if self.task.cancelled() or self.task.exception() else "done"

    @property
    def error(self) -> str:
        """Why it failed; empty if it did not."""
        if self.status != "error":
            return ""
        failure = None if self.task.cancelled() else self.task.exception()
        return str(failure) if isinstance(failure, AllYouNeedError) else _FAILURE


class DocumentJobs:
    """The jobs of one server, and where their results are kept. They are forgotten when the results are."""

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
        """Let `work` run, which makes the content and the name of a file. Returns the identifier and key of the job."""
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
        """A job by its identifier and key. Refuses, with status 404, what is no job or the wrong key."""
        job = self._jobs.get(identifier)
        if job is None or not hmac.compare_digest(job.key.encode(), key.encode()):
            raise Refusal(404, "Document not found")
        return job

    def result(self, job: DocumentJob) -> StoredFile:
        """A finished document. Refuses one that is not ready (503) or not there any more (404)."""
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
