"""Updates that are not finite leave the weights as they are; a GPU decides that without the program waiting for it.

On a GPU the program is ahead of the device. If it read after every update whether that was finite, the device would
have nothing to do until it gets the next one. So the optimizer is handed the answer on the device, and the program
reads it one update later, when it has long been copied.
"""

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..device import move, runs_ahead


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


def skips_on_device(optimizer: Optimizer, device: torch.device) -> bool:
    """Whether the updates of `optimizer` are to be skipped on the device, without the program waiting."""
    # PyTorch's sign that `step` honours `found_inf`, as `torch.amp.GradScaler` hands it to fused optimizers.
    return runs_ahead(device) and bool(getattr(optimizer, "_step_supports_amp_scaling", False))


def step_on_device(optimizer: Optimizer, is_finite: Tensor) -> None:
    """`optimizer.step()`, which changes neither weights nor state if `is_finite`, a bool on the device, is False."""
    optimizer.found_inf = (~is_finite).float()  # type: ignore[attr-defined]
    try:
        optimizer.step()
    finally:
        del optimizer.found_inf  # type: ignore[attr-defined]
