"""Work that the processes of a Ray cluster share, on one machine or on many, with the results in order.

Ray starts the processes, and starts one that was killed again, which then repeats what it had not finished.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from .errors import AllYouNeedError, ConfigError, MissingExtraError

AHEAD = 2  # items a process: one that it works on, and one that waits
MOST_RESTARTS = 3  # of a process, and repetitions of an item

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ClusterWorker(Generic[_Item, _Result]):
    """A process of a cluster, which does one item at a time with what `make` returns."""

    def __init__(self, make: Callable[[], Callable[[_Item], _Result]]) -> None:
        self._make = make
        self._work: Callable[[_Item], _Result] | None = None

    def run(self, item: _Item) -> _Result | AllYouNeedError:
        """The result for an item, or why there is none."""
        try:
            self._work = self._work or self._make()
            return self._work(item)
        except AllYouNeedError as error:
            return error


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The module `ray`, connected to the cluster at `address`; "local" starts one that ends with the block.

    A connection that this process has already is used, and stays. Without an address nothing happens.
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


@contextmanager
def block_map(
    function: Callable[[_Item], _Result], address: str
) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Result]]]:
    """A `map` of a function over blocks of work, in the processes of the cluster at `address`; "": in this one."""
    if not address:
        yield partial(map, function)
        return
    with cluster_map(partial(_unchanged, function), address) as in_order:
        yield in_order


def _unchanged(function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    return function


@contextmanager
def cluster_map(
    make: Callable[[], Callable[[_Item], _Result]], address: str
) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Result]]]:
    """A `map` whose function is made by `make` in each process of a cluster, one for each of its cores.

    `address` is that of a running cluster, or "local" for one on this machine, which ends with the block. A cluster
    that this process is connected to already is used, and stays. Items and results pass through this process, a few
    at a time. Raises the errors of the function in the order of the items.
    """
    workers: list[Any] = []
    with connected(address) as ray:
        try:
            count = max(1, int(ray.cluster_resources().get("CPU", 1)))
            options = {"num_cpus": 1, "max_restarts": MOST_RESTARTS, "max_task_retries": MOST_RESTARTS}
            workers = [ray.remote(**options)(ClusterWorker).remote(make) for _ in range(count)]

            def ordered(items: Iterable[_Item]) -> Iterator[_Result]:
                waiting: deque[Any] = deque()
                for number, item in enumerate(items):
                    waiting.append(workers[number % count].run.remote(item))
                    if len(waiting) >= AHEAD * count:
                        yield _result(ray, waiting.popleft())
                while waiting:
                    yield _result(ray, waiting.popleft())

            yield ordered
        finally:
            for worker in workers:
                ray.kill(worker)


def _started_ray(address: str) -> tuple[Any, bool]:
    """The module, connected to a cluster, and whether it was not before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray", "ray") from error
    if ray.is_initialized():
        return ray, False
    try:
        ray.init(
            address=address, include_dashboard=False if address == "local" else None, log_to_driver=False,
            logging_level="ERROR",
        )  # fmt: skip
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f'--ray {address} is no Ray cluster that answers ({reason}); "local" starts one here'
        ) from error
    return ray, True


def _result(ray: Any, reference: Any) -> Any:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayActorError as error:
        raise AllYouNeedError(
            f"a process of the Ray cluster has ended {MOST_RESTARTS + 1} times on the same work; the machine may have "
            "too little memory for it"
        ) from error
    if isinstance(result, AllYouNeedError):
        raise result
    return result
