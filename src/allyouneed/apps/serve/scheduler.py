"""Combine texts of all clients into batches: the event loop accepts requests, and threads translate them."""

import asyncio
import math
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

from ...errors import DeadlineExceeded, Overloaded
from ...machine.device import available_cores, use_one_thread
from ...translator import SplitTexts, Translation, Translator
from .batching import PLAIN, BatchWorkers, QueuedRequest, SegmentGroup, SegmentQueue, TranslationOptions
from .languages import ModelKey
from .models import ModelStore
from .monitoring import Monitoring

SPLIT_CHARACTERS = 2_000  # longer texts are split in a thread, so that the event loop is not blocked
_Result = TypeVar("_Result")


class Scheduler:
    """Translates texts on `workers` threads, in batches that requests share.

    At most `max_queue` texts may be accepted and not yet answered. If there are none, even a larger request is
    accepted.
    """

    def __init__(
        self,
        models: ModelStore,
        monitoring: Monitoring | None = None,
        *,
        workers: int = 0,
        max_queue: int = 1000,
        timeout: float = 60.0,
    ) -> None:
        self.models, self._monitoring = models, monitoring or Monitoring()
        self._max_queue, self._timeout = max_queue, timeout
        workers = workers or available_cores()
        self._queue = SegmentQueue()
        self._accepted = 0  # texts
        self._freed = asyncio.Event()  # set whenever the number decreases
        self._workers = BatchWorkers(self._queue, self._monitoring, workers=workers)
        self._side_jobs = ThreadPoolExecutor(workers, "translate-aside")
        self._monitoring.queued.set_function(lambda: self._accepted)

    @property
    def queue_length(self) -> int:
        """The number of texts that are accepted and not yet answered."""
        return self._accepted

    def start(self) -> None:
        """Start the worker threads."""
        self._workers.start()

    def close(self, *, abort: bool = False) -> None:
        """Finish the current batches, or with `abort` break them off, and stop the threads."""
        self._queue.close(abort=abort)
        self._workers.join()
        self._side_jobs.shutdown(cancel_futures=True)

    async def translate(
        self,
        key: ModelKey,
        texts: Sequence[str],
        options: TranslationOptions = PLAIN,
        *,
        wait: bool = False,
    ) -> list[Translation]:
        """Translate texts, in order.

        Refuses at once, with `Overloaded`, if too many texts are waiting; set `wait` for the later texts of a request
        already in progress, which then wait for room instead. Raises `DeadlineExceeded` after `timeout` seconds, and
        `InputError` for a text that the model cannot read, with the number of the text as `line`. Cancelling the task
        drops the waiting texts.
        """
        async with within(self._timeout):
            while wait and self._is_full(len(texts)):
                self._freed.clear()
                await self._freed.wait()
            with self._accept(len(texts)):
                request = QueuedRequest(await self.translator(key), options)
                try:
                    return await self._translate(request, texts)
                finally:
                    self._queue.drop(request)

    async def stream(self, key: ModelKey, text: str, options: TranslationOptions = PLAIN) -> AsyncGenerator[str]:
        """Yield the translation of a text piece by piece, as `Translator.stream` does."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        loop, stopped = asyncio.get_running_loop(), threading.Event()

        def work(translator: Translator) -> None:
            try:
                for piece in translator.using(glossary=dict(options.glossary) or None).stream(text):
                    if stopped.is_set():
                        return
                    loop.call_soon_threadsafe(pieces.put_nowait, piece)
            finally:
                loop.call_soon_threadsafe(pieces.put_nowait, None)

        job = asyncio.ensure_future(self.run(key, work))
        job.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await job
        finally:
            stopped.set()
            job.cancel()

    async def run(self, key: ModelKey, function: Callable[[Translator], _Result]) -> _Result:
        """Call `function` with the translator of a pair and return the result.

        It runs in a thread, outside all batches.
        """

        def work(translator: Translator) -> _Result:
            use_one_thread()
            return function(translator)

        with self._accept(1):
            async with within(self._timeout):
                translator = await self.translator(key)
                return await asyncio.get_running_loop().run_in_executor(self._side_jobs, work, translator)

    @contextmanager
    def _accept(self, count: int) -> Iterator[None]:
        if self._is_full(count):
            self._monitoring.overloads.inc()
            raise Overloaded(
                f"{self._accepted} texts are waiting already; try again later",
                retry_after=math.ceil(self._accepted / self._workers.texts_per_second),
            )
        self._accepted += count
        try:
            yield
        finally:
            self._accepted -= count
            self._freed.set()

    def _is_full(self, count: int) -> bool:
        return bool(self._accepted) and self._accepted + count > self._max_queue

    async def translator(self, key: ModelKey) -> Translator:
        """Return the translator of a pair, loading the model if necessary."""
        model = self.models.loaded(key)
        if model is None:
            model = await asyncio.to_thread(self.models.load, key)
        return model.base

    async def _translate(self, request: QueuedRequest, texts: Sequence[str]) -> list[Translation]:
        groups: deque[asyncio.Future[list[Translation]]] = deque()
        translations: list[Translation] = []
        most_waiting = 2 * request.translator.decode.batch_size
        for first, some in _chunks(texts):
            split = await _split(request, some, first)
            groups.append(self._add(request, split, first))
            while len(request.waiting) > most_waiting:  # large requests are split only as fast as they are translated
                translations += await groups.popleft()
        for group in groups:
            translations += await group
        return translations

    def _add(self, request: QueuedRequest, split: SplitTexts, first: int) -> "asyncio.Future[list[Translation]]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Translation]] = loop.create_future()

        def finish(group: SegmentGroup) -> None:
            if answer.done():
                return
            try:
                if group.error is not None:
                    raise group.error
                answer.set_result(request.translator.join(group.split, group.results, first_line=first))
            except Exception as error:
                answer.set_exception(error)
                answer.exception()  # counts as retrieved even if the request has already ended

        def finish_soon(group: SegmentGroup) -> None:
            with suppress(RuntimeError):  # the loop is closed, because the server was stopped at once
                loop.call_soon_threadsafe(finish, group)

        if split.segments:
            self._queue.add(SegmentGroup(request, split, finish_soon))
        else:
            answer.set_result(request.translator.join(split, [], first_line=first))
        return answer


def _chunks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield chunks of consecutive texts: a few thousand characters together, or one longer text.

    Each chunk comes with the number of its first text, counted from 1.
    """
    start, characters = 0, 0
    for index, text in enumerate(texts):
        if characters and characters + len(text) > SPLIT_CHARACTERS:
            yield start + 1, texts[start:index]
            start, characters = index, 0
        characters += len(text)
    if start < len(texts):
        yield start + 1, texts[start:]


async def _split(request: QueuedRequest, texts: Sequence[str], first: int) -> SplitTexts:
    options = request.options
    prefix = options.prefix if isinstance(options.prefix, str) else options.prefix[first - 1 : first - 1 + len(texts)]

    def work() -> SplitTexts:
        return request.translator.split(
            texts,
            prefix=prefix,
            glossary=dict(options.glossary) or None,
            first_line=first,
            is_cancelled=lambda _: request.cancelled,
            split_sentences=options.split_sentences,
        )

    is_slow = options.glossary or sum(map(len, texts)) > SPLIT_CHARACTERS
    return await asyncio.to_thread(work) if is_slow else work()


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Raise `DeadlineExceeded` if the `with` block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise DeadlineExceeded(f"no translation within {seconds:g} seconds; send less at once") from None
