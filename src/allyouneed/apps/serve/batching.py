"""The queue of segments to translate, the choice of the next batch, and the threads that translate it."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal
from weakref import WeakKeyDictionary

from ...machine.device import use_one_thread
from ...translator import Segment, SplitTexts, Translation, Translator
from .monitoring import Monitoring

BATCH_SECONDS = 1.0  # a batch is kept small enough to take about this long at most
GATHER_SECONDS = 0.003  # gives clients that have just got answers time to send more


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """The options of a request besides its texts. Texts for the same model share batches even if glossaries differ."""

    alternatives: int = 0
    align: Literal["words", "tokens"] | None = None
    glossary: tuple[tuple[str, str], ...] = ()  # pairs of a term and its translation
    prefix: str | tuple[str, ...] = ""  # of all texts, or of each
    split_sentences: bool = True  # off for single sentences, and for texts to translate as a whole


PLAIN = TranslationOptions()


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """A request: its waiting segments, and whether somebody still waits for them."""

    translator: Translator
    options: TranslationOptions
    waiting: list["QueuedSegment"] = field(default_factory=list)
    cancelled: bool = False


@dataclass(slots=True, eq=False)
class SegmentGroup:
    """Segments that were split together. `on_done` receives their translations, or an error, in a worker thread."""

    request: QueuedRequest
    split: SplitTexts
    on_done: Callable[["SegmentGroup"], None]
    results: list[Translation | None] = field(default_factory=list)
    missing: int = 0
    error: Exception | None = None

    def segments(self) -> Iterator["QueuedSegment"]:
        """Yield the segments for the queue.

        Segments with a prefix or phrases take longer, so they are never put into a batch with others.
        """
        translator, options = self.request.translator, self.request.options
        for index, segment in enumerate(self.split.segments):
            kind = (id(translator), options.alternatives, options.align, segment.request.is_free)
            yield QueuedSegment(self, index, kind)


@dataclass(slots=True, eq=False)
class QueuedSegment:
    """A segment, and the place for its translation."""

    group: SegmentGroup
    index: int
    kind: Hashable  # equal for segments that may share a batch

    @property
    def segment(self) -> Segment:
        return self.group.split.segments[self.index]

    @property
    def tokens(self) -> int:
        """The length of the source in tokens."""
        return len(self.segment.request.source)


class SegmentQueue:
    """The segments that wait to be translated.

    Requests take turns, and segments of similar length that may share a batch are taken together.
    """

    def __init__(self) -> None:
        self._requests: deque[QueuedRequest] = deque()  # requests with waiting segments
        self._changed = threading.Condition()
        self._taken: set[QueuedSegment] = set()  # in a batch that is not delivered yet
        self._closed = False

    def __len__(self) -> int:
        with self._changed:
            return sum(len(request.waiting) for request in self._requests)

    def add(self, group: SegmentGroup) -> None:
        """Add the segments of a group to the queue."""
        segments, request = list(group.segments()), group.request
        group.results, group.missing = [None] * len(segments), len(segments)
        with self._changed:
            if not request.waiting:
                self._requests.append(request)
            request.waiting += segments
            self._changed.notify()

    def drop(self, request: QueuedRequest) -> None:
        """Forget the waiting segments of a request."""
        with self._changed:
            request.cancelled = True
            if request.waiting:
                self._requests.remove(request)
                request.waiting = []

    def take(self, max_tokens: Callable[[Translator], float]) -> list[QueuedSegment]:
        """Take the segments of the next batch, waiting for at least one. Returns [] once the queue is closed.

        A batch has at most the model's `batch_size` segments, and `max_tokens` source tokens unless its first segment
        alone has more.
        """
        with self._changed:
            while not (self._requests or self._closed):
                self._changed.wait()
            if self._closed:
                return []
            translator = self._requests[0].translator
            batch = self._choose(translator.decode.batch_size, max_tokens(translator))
            chosen = set(batch)
            for request in {id(one.group.request): one.group.request for one in batch}.values():
                request.waiting = [one for one in request.waiting if one not in chosen]
            self._taken |= chosen
            self._requests.rotate(-1)
            self._requests = deque(request for request in self._requests if request.waiting)
            if self._requests:
                self._changed.notify()
            return batch

    def deliver(self, batch: Sequence[QueuedSegment], translations: Sequence[Translation | None]) -> None:
        """Hand the translations of a batch to their groups, and notify groups that are complete or have an error."""
        done: dict[int, SegmentGroup] = {}
        with self._changed:
            self._taken.difference_update(batch)
            for one, translation in zip(batch, translations, strict=True):
                one.group.results[one.index] = translation
                one.group.missing -= 1
                if one.group.missing == 0 or one.group.error is not None:
                    done[id(one.group)] = one.group
        for group in done.values():
            group.on_done(group)

    def close(self, *, abort: bool = False) -> None:
        """Make every `take` return nothing.

        With `abort`, segments in unfinished batches are no longer wanted either.
        """
        with self._changed:
            self._closed = True
            for one in self._taken if abort else ():
                one.group.request.cancelled = True
            self._changed.notify_all()

    def _choose(self, size: int, max_tokens: float) -> list[QueuedSegment]:
        """Choose segments from the requests in turn, twice as many as fit, and keep those of similar length.

        All chosen segments may share a batch.
        """
        kind = self._requests[0].waiting[0].kind
        alike = ([one for one in request.waiting if one.kind == kind][: 2 * size] for request in self._requests)
        candidates = [one for turn in zip_longest(*alike) for one in turn if one is not None][: 2 * size]
        first = candidates[0]
        if len(candidates) > size:
            candidates.sort(key=lambda one: abs(one.tokens - first.tokens))  # stable, so the first stays the first
        batch, total = [first], first.tokens
        for one in candidates[1:size]:
            total += one.tokens
            if total > max_tokens:
                break
            batch.append(one)
        return batch


class BatchWorkers:
    """As many threads as `workers`, which translate the segments of a queue batch by batch."""

    def __init__(self, queue: SegmentQueue, monitoring: Monitoring, *, workers: int) -> None:
        self._queue, self._monitoring, self._speed = queue, monitoring, TranslationSpeed()
        self._threads = [
            threading.Thread(target=self._work, name=f"translate-{number}", daemon=True) for number in range(workers)
        ]

    @property
    def texts_per_second(self) -> float:
        """How many segments a worker translates per second."""
        return self._speed.texts

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the threads to end after the queue was closed. They finish their current batches."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while batch := self._queue.take(self._speed.batch_tokens):
            use_one_thread()  # before each batch, because a later model may be the first to need PyTorch
            self._translate(batch)
            if len(batch) > 1:
                time.sleep(GATHER_SECONDS)  # otherwise the first client to send again would get a batch of its own

    def _translate(self, batch: Sequence[QueuedSegment]) -> None:
        request, start = batch[0].group.request, time.perf_counter()
        try:
            translations = request.translator.translate_segments(
                [one.segment for one in batch], alternatives=request.options.alternatives, align=request.options.align
            )
        except Exception as error:
            if len(batch) > 1:  # only the segment that cannot be translated should fail
                for one in batch:
                    self._translate([one])
                return
            batch[0].group.error = error
            translations = [None]
        seconds, tokens = time.perf_counter() - start, sum(one.tokens for one in batch)
        self._speed.update(request.translator, len(batch), tokens, seconds)
        self._monitoring.count_batch(len(batch), tokens, seconds)
        self._queue.deliver(batch, translations)


class TranslationSpeed:
    """How fast a worker is: in source tokens per second with each translator, and in texts per second with all."""

    def __init__(self) -> None:
        self._tokens: WeakKeyDictionary[Translator, float] = WeakKeyDictionary()
        self.texts = 10.0

    def batch_tokens(self, translator: Translator) -> float:
        """Return how many source tokens a batch may have."""
        return self._tokens.get(translator, math.inf) * BATCH_SECONDS

    def update(self, translator: Translator, texts: int, tokens: int, seconds: float) -> None:
        """Record that some texts have been translated."""
        latest = tokens / max(seconds, 1e-6)
        previous = self._tokens.get(translator, latest)
        self._tokens[translator] = 0.8 * previous + 0.2 * latest
        self.texts = 0.8 * self.texts + 0.2 * texts / max(seconds, 1e-6)
