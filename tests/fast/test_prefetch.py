"""Batches made ahead by a thread: the same ones, in order, and no thread that stays behind."""

import threading
from collections.abc import Iterator

import pytest

from allyouneed.fast.prefetch import prefetch
from waiting import PATIENCE


def running() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@pytest.mark.parametrize("ahead", [1, 2, 50])
def test_items_are_the_same_in_order_and_made_by_one_other_thread(ahead: int) -> None:
    makers = set()

    def make() -> Iterator[int]:
        for number in range(20):
            makers.add(threading.current_thread().name)
            yield number

    assert list(prefetch(make(), ahead=ahead)) == list(range(20))
    assert len(makers) == 1
    assert threading.current_thread().name not in makers
    assert running() == []


def test_the_next_item_is_made_while_the_caller_has_the_one_before() -> None:
    made = [threading.Event() for _ in range(5)]

    def make() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    items = prefetch(make(), ahead=2)
    assert next(items) == 0
    assert made[2].wait(PATIENCE)  # without another call of next
    assert not made[3].is_set()
    assert list(items) == [1, 2, 3, 4]


def test_an_exception_comes_where_its_item_would() -> None:
    def make() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    items = prefetch(make(), ahead=5)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(items)
    assert running() == []


def test_closing_ends_the_thread() -> None:
    items = prefetch(iter(range(10**9)))
    assert next(items) == 0
    assert running() != []
    items.close()  # type: ignore[attr-defined]
    assert running() == []
