"""Hold back Ctrl-C and SIGTERM until the current work may be interrupted.

A run checks between two updates whether it was asked to stop. A command that can be resumed writes its rows and the
notes about them without a stop in between.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def no_signal() -> int:
    """Return 0, because nothing else asks to stop."""
    return 0


class InterruptRequest:
    """The signal that has requested a stop, or that `other_reason` returns; 0 if there is no reason to stop."""

    def __init__(self, other_reason: Callable[[], int] = no_signal) -> None:
        self._received = 0
        self._other_reason = other_reason

    @property
    def signal(self) -> int:
        """The signal, or 0."""
        return self._received or self._other_reason()

    def receive(self, number: int) -> None:
        """Record a signal."""
        self._received = number


@contextmanager
def catch_interrupts(other_reason: Callable[[], int] = no_signal) -> Iterator[InterruptRequest]:
    """Record the first signal inside this `with` block without acting on it. A second signal has its usual effect.

    `other_reason` returns a signal if there is another reason to stop, otherwise 0. Python delivers signals to the main
    thread only; in other threads the block records none.
    """
    request = InterruptRequest(other_reason)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, _: FrameType | None) -> None:
        request.receive(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield request
    finally:
        restore()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay the first signal that comes inside this `with` block until the block has ended."""
    with catch_interrupts() as request:
        yield
    if request.signal:
        signal.raise_signal(request.signal)
