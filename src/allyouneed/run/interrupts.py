"""Interrupts: Ctrl-C and SIGTERM are handled between two updates."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptRequest:
    """The signal that has requested a stop, if any."""

    signal: int | None = None


@contextmanager
def catch_interrupts() -> Iterator[InterruptRequest]:
    """Inside this block the first signal is only recorded; a second one has its usual effect.

    Python delivers signals to the main thread only; in another thread the block changes nothing.
    """
    request = InterruptRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, _: FrameType | None) -> None:
        request.signal = number
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
