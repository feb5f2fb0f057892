"""Workers: processes that share every batch of a run."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from ..train.gradients import Gradients
from .gradient_sums import DividedWeights

_Result = TypeVar("_Result")


class Workers:
    """The workers of a run, with only this process. `WorkerGroup` has the same methods for several processes."""

    rank = 0
    count = 1

    def attach(self, model: Transformer, optimizer: Optimizer) -> None:
        """Give all workers the weights of the first worker, and each worker its part of the optimizer's state."""

    def detach(self) -> None:
        """Leave the group. This process then makes the following updates by itself."""

    def gradients(self, local: Gradients, *, first: int) -> Gradients:
        """Return the function that computes the gradients of whole batches from update `first` on.

        `local` computes this worker's part of them.
        """
        return local

    def gather(self, number: int) -> list[int]:
        """Collect the numbers that the workers pass, in the order of the workers.

        Returns when every worker has called it.
        """
        return [number]

    def agree(self, number: int) -> int:
        """Return the largest of the numbers that the workers pass."""
        return max(self.gather(number))

    def from_first(self, act: Callable[[], _Result]) -> _Result:
        """Call `act` in the first worker only, and return its result in every worker."""
        return act()

    @contextmanager
    def whole_optimizer(self, optimizer: Optimizer) -> Iterator[None]:
        """Give the first worker's optimizer the state of every parameter inside the `with` block."""
        yield


def workers_here(count: int) -> int:
    """Count the processes on this machine among `count` workers: all of them, unless torchrun uses several machines."""
    by_torchrun = os.environ.get("WORLD_SIZE") == str(count)
    return int(os.environ.get("LOCAL_WORLD_SIZE", count)) if by_torchrun else count


class WorkerGroup(Workers):
    """The processes of the default group of `torch.distributed`. Each computes a part of every update."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.count = dist.get_world_size()

    def attach(self, model: Transformer, optimizer: Optimizer) -> None:
        self._parameters = list(model.parameters())
        self._owners = divide(optimizer, self._parameters, self.count)
        self._weights = DividedWeights(self._parameters, self._owners)
        self._sharing = optimizer.register_step_post_hook(lambda *_: self._weights.share_weights())
        self._keep_own_state(optimizer)

    def detach(self) -> None:
        self._sharing.remove()

    def gradients(self, local: Gradients, *, first: int) -> Gradients:
        steps = count(first)

        def summed(model: Transformer, batches: Sequence[Batch], config: TrainConfig) -> tuple[Tensor, Tensor]:
            self._seed(config.seed, next(steps))
            tokens = sum(batch.count_tokens(model.config.effective_target_pad_id) for batch in batches)
            loss, _ = local(model, batches, config)
            losses, real = self._gather([float(loss), tokens]).unbind(1)
            shares = real / real.sum()
            norm_here = self._weights.sum_gradients(shares.tolist())
            norm = self._gather([float(norm_here) ** 2]).sum().sqrt().float().to(loss.device)
            return (losses @ shares).float().to(loss.device), norm  # a part without a token has the loss 0

        return summed

    def gather(self, number: int) -> list[int]:
        return [int(row) for row in self._gather([number])]

    def from_first(self, act: Callable[[], _Result]) -> _Result:
        results = [act() if self.rank == 0 else None]
        dist.broadcast_object_list(results)
        return results[0]  # type: ignore[return-value]

    @contextmanager
    def whole_optimizer(self, optimizer: Optimizer) -> Iterator[None]:
        states = {
            index: optimizer.state[parameter]
            for index, parameter in enumerate(self._parameters)
            if self.rank and parameter in optimizer.state
        }
        gathered: list[dict[int, dict[str, Tensor]]] | None = [{}] * self.count if self.rank == 0 else None
        dist.gather_object(states, gathered)
        for part in gathered or ():
            optimizer.state.update({self._parameters[index]: tensors for index, tensors in part.items()})
        yield
        self._keep_own_state(optimizer)

    def _keep_own_state(self, optimizer: Optimizer) -> None:
        for parameter, owner in zip(self._parameters, self._owners, strict=True):
            if owner != self.rank:
                optimizer.state.pop(parameter, None)

    def _seed(self, seed: int, step: int) -> None:
        """Seed this worker's random numbers by the seed and the update only, so that a resumed run draws the same."""
        numbers = np.random.SeedSequence((seed, step, self.rank)).generate_state(1, np.uint64)
        seed = int(numbers[0]) >> 1
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 60 times as long
        if torch.cuda.is_available():
            torch.cuda.manual_seed(seed)

    def _gather(self, numbers: Sequence[float]) -> Tensor:
        """Gather the numbers of all workers, (workers, numbers). Returns when every worker has called it."""
        gathered = [torch.empty(len(numbers), dtype=torch.float64) for _ in range(self.count)]
        dist.all_gather(gathered, torch.tensor(numbers, dtype=torch.float64))
        return torch.stack(gathered)


def divide(optimizer: Optimizer, parameters: Sequence[nn.Parameter], count: int) -> list[int]:
    """Choose the worker that updates each parameter, so that all workers have about the same work."""
    muon = {id(p) for group in optimizer.param_groups if group.get("update") == "muon" for p in group["params"]}
    # Per number, a Newton–Schulz product for 16 rows takes about as long as everything that Adam does.
    costs = [p.numel() * (1 + min(p.shape) / 16 if id(p) in muon else 1) for p in parameters]
    owners = [0] * len(parameters)
    loads = [0.0] * count
    for index in sorted(range(len(parameters)), key=lambda index: -costs[index]):
        owners[index] = loads.index(min(loads))
        loads[owners[index]] += costs[index]
    return owners
