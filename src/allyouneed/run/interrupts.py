"""Being asked to stop: Ctrl-C and SIGTERM are noticed between two updates."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptRequest:
    """Whether a signal has asked to stop, and which."""

    signal: int | None = None


@contextmanager
def catch_interrupts() -> Iterator[InterruptRequest]:
    """Within this block the first signal is only noted; a second one does what it always does.

    Signals reach the main thread alone; in another thread nothing changes.
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
