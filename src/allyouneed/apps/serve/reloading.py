"""Bundles that change on disk are read again: at SIGHUP, and if wanted every few seconds."""

import asyncio
import logging
import signal
import threading
from contextlib import suppress
from typing import Self

from .models import ModelStore

_LOG = logging.getLogger("allyouneed.apps.serve")


class Reloader:
    """Reloads changed bundles while the block runs. `every` is in seconds; 0: only at SIGHUP."""

    def __init__(self, models: ModelStore, *, every: float) -> None:
        self._models, self._every = models, every
        self._signalled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        # Only a program's main thread gets signals; a test's server runs in another.
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._signalled.set)
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every or None):
                    await self._signalled.wait()
            self._signalled.clear()
            for key, outcome in (await asyncio.to_thread(self._models.reload_changed)).items():
                level = logging.INFO if outcome == "reloaded" else logging.WARNING
                _LOG.log(level, "%s: %s", key, outcome)
