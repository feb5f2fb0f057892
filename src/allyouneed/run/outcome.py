"""Whether an update was finite, read without waiting for a GPU.

On a GPU the program is ahead of the device. If it read after every update whether that was finite, the device would
have nothing to do until it gets the next one. So the program reads it one update later, when it has long been copied.
"""

import torch
from torch import Tensor

from ..device import move


class Outcome:
    """Whether an update was finite: `is_finite`, a bool on the device, and its copy on the way to the host."""

    def __init__(self, is_finite: Tensor) -> None:
        self.is_finite = is_finite
        self._copied: torch.cuda.Event | None = None
        self._value = move(is_finite, torch.device("cpu"))
        if is_finite.is_cuda:
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record()

    def read(self) -> bool:
        """The answer; waits for the update if it is not done."""
        if self._copied is not None:
            self._copied.synchronize()
        return bool(self._value)
