"""Batches made ahead by a thread, while the update before them is computed."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")

BATCHES_AHEAD = 2  # batches that wait: the next update's, and another because they take different times


def prefetch(items: Iterator[_Item], *, ahead: int = BATCHES_AHEAD) -> Iterator[_Item]:
    """Yield the same items in the same order; a thread makes the next `ahead` while the caller works with one.

    Only that thread uses `items`. An exception is raised where its item would come. The thread ends with the
    last item, and when the generator is closed; up to `ahead` items that were taken from `items` are then lost.
    """
    end = object()
    with ThreadPoolExecutor(1, "prefetch") as pool:
        waiting = deque(pool.submit(next, items, end) for _ in range(ahead))
        try:
            while (item := waiting.popleft().result()) is not end:
                waiting.append(pool.submit(next, items, end))
                yield item  # type: ignore[misc]
        finally:
            for future in waiting:
                future.cancel()
