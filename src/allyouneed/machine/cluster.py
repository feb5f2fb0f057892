"""Divide work among the processes of a Ray cluster, on one or more machines; results come in order.

Ray starts the processes. If a process is killed or a machine fails, Ray repeats its unfinished work elsewhere.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

from ..errors import AllYouNeedError, ConfigError, refused, require_extra

AHEAD = 2  # items per core: one in progress and one waiting
CONNECTING_SECONDS = 10  # for connecting to the machine that an address names
MOST_REPETITIONS = 3  # of an item whose process was killed

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_made: dict[str, Callable[[Any], Any]] = {}  # in a process of a cluster: its work functions, by the key of their makers


def run_item(key: str, makers: list[Any], item: _Item) -> _Result | AllYouNeedError:
    """Compute the result for one item in a process of a cluster. If that fails, return the error.

    `makers` refers to the function that makes the work function; each process calls that maker once.
    """
    try:
        if key not in _made:
            import ray

            _made.clear()
            _made[key] = ray.get(makers[0])()
        result: _Result = _made[key](item)
        return result
    except AllYouNeedError as error:
        return error


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Import `ray`, connected to the cluster at `address`. "local" starts a cluster that ends with the `with` block.

    An existing connection of this process is used, and stays open. Without an address, the block gets None.
    """
    if not address:
        yield None
        return
    ray, is_new = _started_ray(address)
    try:
        yield ray
    finally:
        if is_new:
            ray.shutdown()


def block_map(
    function: Callable[[_Item], _Result], address: str
) -> AbstractContextManager[Callable[[Iterable[_Item]], Iterator[_Result]]]:
    """Make a `cluster_map` of a function that needs no preparation."""
    return cluster_map(partial(_unchanged, function), address)


def _unchanged(function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    return function


@contextmanager
def cluster_map(
    make: Callable[[], Callable[[_Item], _Result]], address: str
) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Result]]]:
    """Make a `map` whose function is made by `make` in each process of a cluster; there is one process per core.

    `address` is the address of a running cluster, or "local" for a cluster on this machine that ends with the `with`
    block; "" means this process. If this process is already connected to a cluster, that cluster is used, and keeps
    running. Items and results pass through this process, a few at a time. If a process or a machine fails, its items
    are repeated elsewhere. Errors of the function are raised in the order of the items.
    """
    if not address:
        yield partial(map, make())
        return
    with connected(address) as ray:
        ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        task, makers = ray.remote(num_cpus=1, max_retries=MOST_REPETITIONS)(run_item), [ray.put(make)]

        def ordered(items: Iterable[_Item]) -> Iterator[_Result]:
            waiting: deque[Any] = deque()
            for item in items:
                waiting.append(task.remote(makers[0].hex(), makers, item))
                if len(waiting) >= ahead:
                    yield _result(ray, waiting.popleft())
            while waiting:
                yield _result(ray, waiting.popleft())

        yield ordered


def _started_ray(address: str) -> tuple[Any, bool]:
    """Return the module `ray`, connected to a cluster, and True if this call made the connection."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = require_extra("ray", "--ray", "ray")
    if ray.is_initialized():
        return ray, False
    what = f"no Ray cluster answers at --ray {address}"
    with refused(ConfigError, what, Exception, remedy='"local" starts one here'):  # Ray raises bare Exceptions
        _connect(address)
        ray.init(
            address=address, include_dashboard=False if address == "local" else None, log_to_driver=False,
            logging_level="ERROR",
        )  # fmt: skip
    return ray, True


def _connect(address: str) -> None:
    """Connect to HOST:PORT. Fails at once if nothing listens there, because Ray itself would try for minutes."""
    import socket

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECTING_SECONDS).close()


def _result(ray: Any, reference: Any) -> Any:
    try:
        result = ray.get(reference)
    except (
        ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError,
    ) as error:  # fmt: skip
        raise AllYouNeedError(
            f"{MOST_REPETITIONS + 1} processes of the Ray cluster have ended on the same work; the machines may have "
            "too little memory for it"
        ) from error
    if isinstance(result, AllYouNeedError):
        raise result
    return result
