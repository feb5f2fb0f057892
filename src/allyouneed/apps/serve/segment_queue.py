"""The segments that wait to be translated, and which of them make the next batch or join one."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from ...translator import Segment, SplitTexts, Translation, Translator


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """The options of a request. Texts of one model share batches even if their prefixes and glossaries differ."""

    alternatives: int = 0
    align: Literal["words", "tokens"] | None = None
    glossary: tuple[tuple[str, str], ...] = ()  # pairs of a term and its translation
    prefix: str | tuple[str, ...] = ""  # of every text, or of each


PLAIN = TranslationOptions()


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """One request: its waiting segments, and whether anybody still wants them."""

    translator: Translator
    options: TranslationOptions
    waiting: list["QueuedSegment"] = field(default_factory=list)
    cancelled: bool = False


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
    can_join: bool  # a batch that is decoded already
    kind: Hashable  # what segments must have in common to share a batch

    @property
    def segment(self) -> Segment:
        return self.group.split.segments[self.index]

    @property
    def tokens(self) -> int:
        """The length of the source."""
        return len(self.segment.request.source)


def queued_segments(group: SegmentGroup) -> Iterator[QueuedSegment]:
    """The segments of a group."""
    translator, options = group.request.translator, group.request.options
    plain = not options.alternatives and options.align is None
    for index, segment in enumerate(group.split.segments):
        can_join = plain and translator.can_join(segment)
        yield QueuedSegment(group, index, can_join, (id(translator), options.alternatives, options.align, can_join))


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

    @property
    def requests(self) -> int:
        """How many have waiting segments; without the lock, so that it may be called after every step."""
        return len(self._requests)

    def add(self, group: SegmentGroup) -> None:
        """Let the segments of a group wait."""
        segments, request = list(queued_segments(group)), group.request
        group.results, group.missing = [None] * len(segments), len(segments)
        with self._changed:
            if not request.waiting:
                self._requests.append(request)
            request.waiting += segments
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
            translator = self._requests[0].translator
            batch = self._take(translator.decode.batch_size, max_tokens(translator))
            if self._requests:
                self._changed.notify()
            return batch

    def take_more(self, kind: Hashable, size: int, max_tokens: float) -> list[QueuedSegment]:
        """At most `size` segments of a kind, of together at most `max_tokens` source tokens, that join a batch.

        Empty if none wait, or if it is the turn of another kind: the batch must end before that can be translated.
        """
        if size <= 0 or not self.requests:
            return []
        with self._changed:
            if self._closed or not self._requests or self._requests[0].waiting[0].kind != kind:
                return []
            if self._requests[0].waiting[0].tokens > max_tokens:
                return []
            return self._take(size, max_tokens)

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

    def _take(self, size: int, max_tokens: float) -> list[QueuedSegment]:
        taken = self._choose(size, max_tokens)
        chosen = set(taken)
        for request in {id(one.group.request): one.group.request for one in taken}.values():
            request.waiting = [one for one in request.waiting if one not in chosen]
        self._taken.update(taken)
        self._requests.rotate(-1)
        self._requests = deque(request for request in self._requests if request.waiting)
        return taken

    def _choose(self, size: int, max_tokens: float) -> list[QueuedSegment]:
        """A segment of each request in turn, twice as many as fit, of one kind; of these the nearest in length."""
        kind = self._requests[0].waiting[0].kind
        alike = ([one for one in request.waiting if one.kind == kind][: 2 * size] for request in self._requests)
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
