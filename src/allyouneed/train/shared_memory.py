"""Memory that the workers of one machine share, and numbers that they exchange through it.

An exchange through a socket of the machine takes each worker about half a millisecond of processor time. Here a worker
writes its numbers and wakes the others with semaphores of the C library, which lie in the same memory.
"""

import ctypes
import fcntl
import mmap
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from itertools import cycle

import torch
import torch.distributed as dist
from torch import Tensor

TIMEOUT = timedelta(hours=12)  # for a validation, during which the other workers wait
BRIEF = 1e-4  # seconds that a worker looks for the others before it sleeps: to be woken up takes about as long
LOOK = 0.5  # seconds after which a worker that waits looks whether the others are alive
NUMBERS, LINE = 16, 64  # numbers of a worker in an exchange; bytes of a cache line, which holds a semaphore


class LostWorkerError(RuntimeError):
    """Another worker of the run has ended."""


def share_memory(size: int, from_first: Callable[[Callable[[], str]], str]) -> tuple[mmap.mmap, int]:
    """Bytes that all workers of the default group share, zeros at first, and the descriptor of their file.

    `from_first` is that of `Workers`. The file is in memory; pages that nobody writes take none.
    """
    is_first = dist.get_rank() == 0
    created = -1
    if sys.platform == "linux" and is_first:
        created = os.memfd_create("allyouneed")
        os.truncate(created, size)
    # The file has no name; the other workers open it through its process.
    path = from_first(lambda: f"/proc/{os.getpid()}/fd/{created}")
    descriptor = created if is_first else os.open(path, os.O_RDWR)
    dist.barrier()  # all have opened it
    return mmap.mmap(descriptor, size), descriptor


class SharedNumbers:
    """Exchanges of a few numbers among the workers of one machine.

    Exchanges use two sets of rows in turn. A worker that writes to a set again has finished the exchange in between,
    which the others began only after they had read the set.
    """

    def __init__(self, from_first: Callable[[Callable[[], str]], str]) -> None:
        self._rank, self._count = dist.get_rank(), (count := dist.get_world_size())
        self._others = [rank for rank in range(count) if rank != self._rank]
        semaphores = LINE * count * count  # from each worker to each
        memory, self._file = share_memory(semaphores + 8 * 2 * count * NUMBERS, from_first)
        weakref.finalize(self, os.close, self._file)
        rows = torch.frombuffer(memory, dtype=torch.float64, offset=semaphores)
        self._rows: Iterator[Tensor] = cycle(rows.view(2, count, NUMBERS))
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._posts = [ctypes.c_void_p(start + LINE * (count * self._rank + other)) for other in self._others]
        self._waits = [ctypes.c_void_p(start + LINE * (count * other + self._rank)) for other in self._others]
        for semaphore in self._posts:
            _library().sem_init(semaphore, 1, 0)
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, self._rank)  # the system gives it back when this process ends
        dist.barrier()

    def gather(self, numbers: Sequence[float]) -> Tensor:
        """The numbers of all workers, (workers, numbers); returns when every worker has called it.

        Raises `LostWorkerError` when another one has ended.
        """
        rows = next(self._rows)
        rows[self._rank, : len(numbers)] = torch.tensor(numbers, dtype=torch.float64)
        for semaphore in self._posts:
            _library().sem_post(semaphore)
        begin = time.monotonic()
        for other, semaphore in zip(self._others, self._waits, strict=True):
            self._wait(other, semaphore, begin)
        return rows[:, : len(numbers)].clone()

    def _wait(self, other: int, semaphore: ctypes.c_void_p, begin: float) -> None:
        library = _library()
        while time.monotonic() < begin + BRIEF:
            if library.sem_trywait(semaphore) == 0:
                return
        while library.sem_timedwait(semaphore, ctypes.byref(_Time.after(LOOK))):
            if self._has_ended(other) and library.sem_trywait(semaphore):
                raise LostWorkerError(f"worker {other + 1} of {self._count} has ended")
            if time.monotonic() > begin + TIMEOUT.total_seconds():
                raise LostWorkerError(f"worker {other + 1} of {self._count} did not answer for {TIMEOUT}")

    def _has_ended(self, other: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, other)
        except OSError:  # it holds its lock
            return False
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, other)
        return True


class _Time(ctypes.Structure):
    """A point in time, as the C library has it."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    @classmethod
    def after(cls, seconds: float) -> "_Time":
        return cls(*divmod(time.time_ns() + round(1e9 * seconds), 10**9))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
