"""Prepare batches in a thread while the GPU or CPU computes the previous update."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")

BATCHES_AHEAD = 2  # waiting batches: for the next update, and one more because batches take different times to make


def prefetch(items: Iterator[_Item], *, ahead: int = BATCHES_AHEAD) -> Iterator[_Item]:
    """Yield the same items in the same order, while a thread makes the next `ahead` items.

    Only that thread uses `items`. An exception is raised in the place of its item. The thread ends with the last item
    or when the generator is closed; up to `ahead` items that were already taken from `items` are then lost.
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
