"""How workers sum their gradients: in memory that they share, on one machine, or by `torch.distributed`.

In shared memory there is one copy of the weights. A gradient is written by the worker that computed it and read by the
one that updates the weight: each number moves once, about nine times faster than through a socket of the machine.
"""

import mmap
import os
import sys
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

ALIGNMENT = 16  # numbers: a cache line


class ReplicatedWeights:
    """The parameters of a model, of which every worker has a copy and makes every update."""

    is_divided = False

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = parameters
        for parameter in parameters:
            dist.broadcast(parameter.data, 0)

    def write_gradients(self) -> None:
        """Nothing to do: `sum_gradients` exchanges them."""

    def sum_gradients(self, shares: Sequence[float]) -> Tensor:
        """Replace the gradients by the sums of all workers' gradients times their shares; returns the norm of these."""
        flat = torch.cat(_flat_gradients(self._parameters)).mul_(shares[dist.get_rank()])
        dist.all_reduce(flat)
        gradients = torch.split(flat, [parameter.numel() for parameter in self._parameters])
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient.view_as(parameter)
        return get_total_norm(gradients)


class SharedWeights:
    """The parameters of a model, moved into memory that all workers share, with the gradients of each.

    `owners` has the worker that updates each parameter. `from_first` is that of `Workers`.
    """

    is_divided = True

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        owners: Sequence[int],
        from_first: Callable[[Callable[[], str]], str],
    ) -> None:
        self._rank, count = dist.get_rank(), dist.get_world_size()
        self._parts = [
            [parameter for parameter, owner in zip(parameters, owners, strict=True) if owner == rank]
            for rank in range(count)
        ]
        sizes = [sum(parameter.numel() for parameter in part) for part in self._parts]
        aligned = [-(-parameter.numel() // ALIGNMENT) * ALIGNMENT for parameter in parameters]
        memory = share_memory(4 * (sum(aligned) + count * sum(sizes)), from_first)
        weights, gradients = torch.split(
            torch.frombuffer(memory, dtype=torch.float32), [sum(aligned), count * sum(sizes)]
        )
        # (worker that computed it, worker that updates the weight)
        self._gradients = [torch.split(of_one, sizes) for of_one in gradients.view(count, -1)]
        with torch.no_grad():
            for parameter, region in zip(parameters, torch.split(weights, aligned), strict=True):
                weight = region[: parameter.numel()].view(parameter.shape)
                if self._rank == 0:
                    weight.copy_(parameter)
                parameter.data = weight
        dist.barrier()  # the weights are there

    def write_gradients(self) -> None:
        """Write the gradients of this worker for the parameters that others update."""
        for rank, part in enumerate(self._parts):
            if part and rank != self._rank:
                torch.cat(_flat_gradients(part), out=self._gradients[self._rank][rank])

    def sum_gradients(self, shares: Sequence[float]) -> Tensor:
        """Sum the gradients of all workers times their shares; parameters that another worker updates lose theirs.

        To be called when all have written. Returns the norm of the sums.
        """
        for part in self._parts:
            if part is not self._parts[self._rank]:
                for parameter in part:
                    parameter.grad = None
        part = self._parts[self._rank]
        if not part:
            return torch.zeros(())
        total = torch.cat(_flat_gradients(part)).mul_(shares[self._rank])
        for rank, share in enumerate(shares):
            if rank != self._rank and share:
                total.add_(self._gradients[rank][self._rank], alpha=share)
        for parameter, gradient in zip(part, torch.split(total, [p.numel() for p in part]), strict=True):
            parameter.grad = gradient.view_as(parameter)
        norm: Tensor = torch.linalg.vector_norm(total)
        return norm


def share_memory(size: int, from_first: Callable[[Callable[[], str]], str]) -> mmap.mmap:
    """Bytes that all workers of the default group share, zeros at first; pages that nobody writes take none.

    `from_first` is that of `Workers`.
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
    memory = mmap.mmap(descriptor, size)
    os.close(descriptor)
    return memory


def _flat_gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
