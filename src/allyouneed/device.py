"""Where the arithmetic happens: which device, and how many threads of the processor."""

import torch

from .errors import ConfigError


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is a CUDA or Apple GPU if there is one, else the processor."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f'device must be "auto", "cpu", "cuda" or "mps", and be there; got {name!r} ({reason})') from error
    return device


def use_threads(count: int) -> None:
    """Compute with `count` threads; 0 leaves PyTorch's choice, one for each core."""
    if count:
        torch.set_num_threads(count)
