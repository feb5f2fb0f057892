"""The threads that translate: each takes a batch from the queue, and what waits joins it while it is decoded."""

import math
import threading
import time
from collections.abc import Sequence
from itertools import count
from weakref import WeakKeyDictionary

import torch

from ...translator import Segment, Translation, Translator
from .monitoring import Monitoring
from .segment_queue import QueuedSegment, SegmentQueue

BATCH_SECONDS = 1.0  # a batch is made so small that a segment stays in it no longer than about this
JOIN_STEPS = 16  # after which segments join a running batch even if they are fewer than it has
SPEED_SECONDS = 0.25  # over which the speed of a running batch is measured


class BatchWorkers:
    """As many threads as `workers`, which translate the segments of a queue."""

    def __init__(self, queue: SegmentQueue, monitoring: Monitoring, *, workers: int) -> None:
        self._queue, self._monitoring, self._count = queue, monitoring, workers
        self._speed = TranslationSpeed()
        self._threads: list[threading.Thread] = []

    @property
    def texts_per_second(self) -> float:
        """How many segments a worker translates in a second."""
        return self._speed.texts

    def start(self) -> None:
        """Start the threads."""
        for number in range(self._count):
            thread = threading.Thread(target=self._work, name=f"translate-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self) -> None:
        """Wait for the threads to end, after the queue was closed: they finish the batches they are at."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        torch.set_num_threads(1)
        while batch := self._queue.take(self._speed.batch_tokens):
            if not batch[0].can_join:
                self._translate_closed(batch)
                continue
            running = RunningBatch(batch, self._queue, self._speed, self._monitoring)
            try:
                running.translate()
            except Exception:  # only the segment that cannot be translated fails
                for one in running.segments():
                    self._translate_closed([one])

    def _translate_closed(self, batch: Sequence[QueuedSegment]) -> None:
        request, start = batch[0].group.request, time.perf_counter()
        try:
            translations = request.translator.translate_segments(
                [one.segment for one in batch], alternatives=request.options.alternatives, align=request.options.align
            )
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._translate_closed([one])
                return
            batch[0].group.error = error
            translations = [None]
        seconds, tokens = time.perf_counter() - start, sum(one.tokens for one in batch)
        self._speed.update(request.translator, len(batch), tokens, seconds)
        self._monitoring.count_batch(len(batch), tokens, seconds)
        _deliver(self._queue, batch, translations)


class RunningBatch:
    """A batch of one kind, at first `batch`; while it is decoded, waiting segments join it as others leave it.

    It has at most the `batch_size` of its model, and as many tokens as take `BATCH_SECONDS`.
    """

    def __init__(
        self, batch: Sequence[QueuedSegment], queue: SegmentQueue, speed: "TranslationSpeed", monitoring: Monitoring
    ) -> None:
        self._arriving, self._queue, self._speed, self._monitoring = batch, queue, speed, monitoring
        self._translator, self._kind = batch[0].group.request.translator, batch[0].kind
        self._numbers, self._active = count(), dict[int, QueuedSegment]()
        self._joined: dict[int, float] = {}  # when each came
        self._tokens = 0  # of the sources
        self._steps = 0  # since the latest came
        self._since, self._finished, self._finished_tokens = time.perf_counter(), 0, 0

    def segments(self) -> list[QueuedSegment]:
        """Those that are in it now."""
        return [*self._active.values(), *self._arriving]

    def translate(self) -> None:
        """Translate until no segment is left."""
        self._translator.translate_running(self._admit, self._finish)

    def _admit(self, _: int) -> list[Segment]:
        some, self._arriving = self._arriving or self._take_more(), ()
        if not some:
            return []
        self._steps, now = 0, time.perf_counter()
        for one in some:
            number = next(self._numbers)
            self._active[number], self._joined[number] = one, now
            self._tokens += one.tokens
        return [one.segment for one in some]

    def _take_more(self) -> list[QueuedSegment]:
        self._steps += 1
        if not self._queue.requests:
            return []
        # To encode a few sources takes nearly as long as many: the batch would wait for each.
        if self._steps < JOIN_STEPS and self._queue.requests < len(self._active):
            return []
        room = self._translator.decode.batch_size - len(self._active)
        return self._queue.take_more(self._kind, room, self._speed.batch_tokens(self._translator) - self._tokens)

    def _finish(self, results: Sequence[tuple[int, Translation | None]]) -> None:
        size, now = len(self._active), time.perf_counter()
        seconds = now - min(self._joined.pop(number) for number, _ in results)
        finished = [self._active.pop(number) for number, _ in results]
        tokens = sum(one.tokens for one in finished)
        self._tokens -= tokens
        self._finished, self._finished_tokens = self._finished + len(finished), self._finished_tokens + tokens
        _deliver(self._queue, finished, [translation for _, translation in results])
        self._monitoring.count_batch(size, tokens, seconds)
        if not self._active or now - self._since > SPEED_SECONDS:
            self._speed.update(self._translator, self._finished, self._finished_tokens, now - self._since)
            self._since, self._finished, self._finished_tokens = now, 0, 0


class TranslationSpeed:
    """How fast a worker is with each translator, in source tokens per second, and with all in texts per second."""

    def __init__(self) -> None:
        self._tokens: WeakKeyDictionary[Translator, float] = WeakKeyDictionary()
        self.texts = 10.0

    def batch_tokens(self, translator: Translator) -> float:
        """How many source tokens a batch may have."""
        return self._tokens.get(translator, math.inf) * BATCH_SECONDS

    def update(self, translator: Translator, texts: int, tokens: int, seconds: float) -> None:
        """Some texts have been translated."""
        latest = tokens / max(seconds, 1e-6)
        previous = self._tokens.get(translator, latest)
        self._tokens[translator] = 0.8 * previous + 0.2 * latest
        self.texts = 0.8 * self.texts + 0.2 * texts / max(seconds, 1e-6)


def _deliver(
    queue: SegmentQueue, segments: Sequence[QueuedSegment], translations: Sequence[Translation | None]
) -> None:
    for group in queue.deliver(segments, translations):
        group.on_done(group)
