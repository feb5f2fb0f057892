"""Which of several ways to compute the same numbers is fastest on this machine: timed while they are used."""

from collections.abc import Callable, Hashable
from time import perf_counter
from typing import Generic, ParamSpec, TypeVar

ROUNDS = 3  # calls of each way that are timed, for each size; the quickest counts, as others may be disturbed

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class FastestWay(Generic[Parameters, Result]):
    """Functions of equal results, of which the fastest is called.

    For each `size`, which says how much is to be computed, the first calls take turns and are timed. So the choice
    costs no more than a few calls of the slower way, and holds for this processor, its threads and its load.
    """

    def __init__(self, *ways: Callable[Parameters, Result]) -> None:
        self._ways = ways
        self._seconds: dict[Hashable, list[list[float]]] = {}
        self._fastest: dict[Hashable, Callable[Parameters, Result]] = {}

    def __call__(self, size: Hashable, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """What each of the functions returns for the arguments after `size`."""
        if fastest := self._fastest.get(size):
            return fastest(*args, **kwargs)
        seconds = self._seconds.setdefault(size, [[] for _ in self._ways])
        timed, way = min(zip(seconds, self._ways, strict=True), key=lambda pair: len(pair[0]))
        start = perf_counter()
        result = way(*args, **kwargs)
        timed.append(perf_counter() - start)
        if min(map(len, seconds)) >= ROUNDS:
            self._fastest[size] = min(zip(seconds, self._ways, strict=True), key=lambda pair: min(pair[0]))[1]
        return result
