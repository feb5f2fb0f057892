"""The segments that wait to be translated, and which of them make the next batch."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ..translator import Segment, SplitTexts, Translation, Translator
from .translation_options import TranslationOptions


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """One request: its waiting segments, and whether anybody still wants them."""

    translator: Translator
    options: TranslationOptions
    waiting: list["QueuedSegment"] = field(default_factory=list)
    cancelled: bool = False

    @property
    def group(self) -> Hashable:
        """What requests must have in common to share batches."""
        return id(self.translator), self.options.alternatives, self.options.align


@dataclass(slots=True, eq=False)
class SegmentGroup:
    """Segments that were split together; `on_done` gets their translations, or the error, in a worker thread."""

    request: QueuedRequest
    split: SplitTexts
    on_done: Callable[["SegmentGroup"], None]
    results: list[Translation | None] = field(default_factory=list)
    missing: int = 0
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class QueuedSegment:
    """A segment, and where its translation belongs."""

    group: SegmentGroup
    index: int

    @property
    def segment(self) -> Segment:
        return self.group.split.segments[self.index]

    @property
    def tokens(self) -> int:
        """The length of the source."""
        return len(self.segment.request.source)


class SegmentQueue:
    """Requests take turns; segments of similar length that may share a batch are taken together."""

    def __init__(self) -> None:
        self._requests: deque[QueuedRequest] = deque()  # those with waiting segments
        self._changed = threading.Condition()
        self._taken: set[QueuedSegment] = set()  # in a batch that is not delivered yet
        self._closed = False

    def __len__(self) -> int:
        with self._changed:
            return sum(len(request.waiting) for request in self._requests)

    def add(self, group: SegmentGroup) -> None:
        """Let the segments of a group wait."""
        count = len(group.split.segments)
        group.results, group.missing = [None] * count, count
        request = group.request
        with self._changed:
            if not request.waiting:
                self._requests.append(request)
            request.waiting += [QueuedSegment(group, index) for index in range(count)]
            self._changed.notify()

    def drop(self, request: QueuedRequest) -> None:
        """Forget what waits of a request."""
        with self._changed:
            request.cancelled = True
            if request.waiting:
                self._requests.remove(request)
                request.waiting = []

    def take(self, max_tokens: Callable[[Translator], float]) -> list[QueuedSegment]:
        """The segments of the next batch, at least one; waits for some. Empty once the queue is closed.

        A batch has at most the `batch_size` of the model, and `max_tokens` source tokens unless its first segment
        alone has more.
        """
        with self._changed:
            while not (self._requests or self._closed):
                self._changed.wait()
            if self._closed:
                return []
            head = self._requests[0]
            batch = self._choose(head, head.translator.decode.batch_size, max_tokens(head.translator))
            chosen = set(batch)
            for request in {id(one.group.request): one.group.request for one in batch}.values():
                request.waiting = [one for one in request.waiting if one not in chosen]
            self._taken.update(batch)
            self._requests.rotate(-1)
            self._requests = deque(request for request in self._requests if request.waiting)
            if self._requests:
                self._changed.notify()
            return batch

    def deliver(self, batch: Sequence[QueuedSegment], translations: Sequence[Translation | None]) -> list[SegmentGroup]:
        """Hand the translations of a batch to its groups. Returns the groups that are whole now, or have an error."""
        done: dict[int, SegmentGroup] = {}
        with self._changed:
            self._taken.difference_update(batch)
            for one, translation in zip(batch, translations, strict=True):
                one.group.results[one.index] = translation
                one.group.missing -= 1
                if one.group.missing == 0 or one.group.error is not None:
                    done[id(one.group)] = one.group
        return list(done.values())

    def close(self, *, abort: bool = False) -> None:
        """Let every `take` return nothing; with `abort` nobody wants the segments of the batches taken any more."""
        with self._changed:
            self._closed = True
            for one in self._taken if abort else ():
                one.group.request.cancelled = True
            self._changed.notify_all()

    def _choose(self, head: QueuedRequest, size: int, max_tokens: float) -> list[QueuedSegment]:
        """A segment of each request of the group in turn, twice as many as fit; of these the nearest in length."""
        alike = [request.waiting[: 2 * size] for request in self._requests if request.group == head.group]
        candidates = [one for turn in zip_longest(*alike) for one in turn if one is not None][: 2 * size]
        first = candidates[0]
        if len(candidates) > size:
            candidates.sort(key=lambda one: abs(one.tokens - first.tokens))  # stable: the first stays the first
        return _within(candidates[:size], max_tokens)


def _within(candidates: Sequence[QueuedSegment], max_tokens: float) -> list[QueuedSegment]:
    total, count = 0, 0
    for one in candidates:
        total += one.tokens
        if count and total > max_tokens:
            break
        count += 1
    return list(candidates[:count])
