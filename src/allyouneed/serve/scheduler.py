"""Texts of all clients in common batches: a queue of texts, and worker threads that translate a batch each."""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ..errors import DeadlineExceeded, Overloaded
from ..translator import Translation, Translator
from .models import ModelKey, ModelStore


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """What a request asks for besides the translation. Texts with equal options and models share batches."""

    alternatives: int = 0
    align: str | None = None  # "words" or "tokens"
    glossary: tuple[tuple[str, str], ...] = ()  # pairs of a term and its translation
    prefix: str = ""
    decode: tuple[tuple[str, object], ...] = ()  # settings of the search that differ from the model's own


PLAIN = TranslationOptions()


@dataclass(slots=True, eq=False)
class _Request:
    key: ModelKey
    options: TranslationOptions
    texts: Sequence[str]
    deadline: float  # on the clock of time.monotonic
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[list[Translation]]"
    results: list[Translation | None] = field(default_factory=list)
    next: int = 0  # the first text that is in no batch yet
    missing: int = 0  # texts without a translation
    cancelled: bool = False


class Scheduler:
    """Translates texts on `workers` threads, in batches that requests share."""

    def __init__(self, models: ModelStore, *, workers: int = 0, max_queue: int = 1000, timeout: float = 60.0) -> None:
        self._models, self._max_queue, self._timeout = models, max_queue, timeout
        self._count = workers or os.cpu_count() or 1
        self._requests: deque[_Request] = deque()  # those with texts in no batch yet
        self._waiting = 0  # texts in no batch yet
        self._changed = threading.Condition()
        self._closed = False
        self._threads: list[threading.Thread] = []

    @property
    def queue_length(self) -> int:
        """The number of texts that wait for a batch."""
        return self._waiting

    def start(self) -> None:
        """Start the worker threads."""
        for number in range(self._count):
            thread = threading.Thread(target=self._work, name=f"translate-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Finish the batches that are being translated, and stop the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    async def translate(
        self,
        key: ModelKey,
        texts: Sequence[str],
        options: TranslationOptions = PLAIN,
        *,
        deadline: float | None = None,
    ) -> list[Translation]:
        """The translations of some texts, in their order.

        `deadline` is a number of seconds from now. Refuses at once if too many texts are waiting (`Overloaded`);
        raises `DeadlineExceeded` when the time is over, and `InputError` for a text that the model cannot read.
        Cancelling the task drops what is still waiting.
        """
        if not texts:
            return []
        loop = asyncio.get_running_loop()
        seconds = self._timeout if deadline is None else deadline
        request = _Request(key, options, texts, time.monotonic() + seconds, loop, loop.create_future())
        request.results, request.missing = [None] * len(texts), len(texts)
        with self._changed:
            # A single large request is accepted by an idle server.
            if self._waiting and self._waiting + len(texts) > self._max_queue:
                raise Overloaded(f"{self._waiting} texts are waiting already; try again in a moment")
            self._requests.append(request)
            self._waiting += len(texts)
            self._changed.notify()
        try:
            async with asyncio.timeout(seconds):
                return await request.answer
        except TimeoutError:
            raise DeadlineExceeded(f"no translation within {seconds:g} seconds; send less at once") from None
        finally:
            self._drop(request)

    def _drop(self, request: _Request) -> None:
        with self._changed:
            request.cancelled = True
            if request in self._requests:
                self._requests.remove(request)
                self._waiting -= len(request.texts) - request.next

    def _work(self) -> None:
        torch.set_num_threads(1)
        while True:
            with self._changed:
                while not (self._requests or self._closed):
                    self._changed.wait()
                if self._closed:
                    return
                key, options = self._requests[0].key, self._requests[0].options
            try:
                translator = self._models.translator(key).using(glossary=dict(options.glossary) or None)
            except Exception as error:
                self._fail_all(key, options, error)
                continue
            batch = self._take(key, options, translator.decode.batch_size)
            self._translate(translator, options, batch)

    def _take(self, key: ModelKey, options: TranslationOptions, size: int) -> list[tuple[_Request, int]]:
        """Texts of one model and options, one of each request in turn."""
        batch: list[tuple[_Request, int]] = []
        with self._changed:
            alike = deque(one for one in self._requests if (one.key, one.options) == (key, options))
            while alike and len(batch) < size:
                request = alike.popleft()
                batch.append((request, request.next))
                request.next += 1
                self._requests.remove(request)
                if request.next < len(request.texts):
                    alike.append(request)
                    self._requests.append(request)
            self._waiting -= len(batch)
        return batch

    def _translate(
        self, translator: Translator, options: TranslationOptions, batch: list[tuple[_Request, int]]
    ) -> None:
        texts = [request.texts[index] for request, index in batch]
        try:
            translations = list(
                translator.translations(
                    texts, prefix=options.prefix, alternatives=options.alternatives, align=options.align
                )
            )
        except Exception as error:
            if len(batch) > 1:  # the others must not suffer
                for one in batch:
                    self._translate(translator, options, [one])
            elif batch:
                _set_exception(batch[0][0], error)
            return
        for (request, index), translation in zip(batch, translations, strict=True):
            with self._changed:
                request.results[index] = translation
                request.missing -= 1
                is_whole = request.missing == 0
            if is_whole:
                _set_result(request)

    def _fail_all(self, key: ModelKey, options: TranslationOptions, error: Exception) -> None:
        for request, _ in self._take(key, options, self._waiting):
            _set_exception(request, error)


def _set_result(request: _Request) -> None:
    def finish() -> None:
        if not request.answer.done():
            request.answer.set_result([one for one in request.results if one is not None])

    request.loop.call_soon_threadsafe(finish)


def _set_exception(request: _Request, error: Exception) -> None:
    def finish() -> None:
        if not request.answer.done():
            request.answer.set_exception(error)

    request.loop.call_soon_threadsafe(finish)
