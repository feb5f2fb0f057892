"""How workers sum their gradients: in memory that they share, on one machine, or by `torch.distributed`.

In shared memory there is one copy of the weights. A gradient is written by the worker that computed it and read by the
one that updates the weight: each number moves once, about nine times faster than through a socket of the machine.
"""

import mmap
import os
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

ALIGNMENT = 16  # numbers: a cache line


class ReplicatedWeights:
    """The parameters of a model, of which every worker has a copy and makes every update."""

    is_divided = False

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = parameters
        for parameter in parameters:
            dist.broadcast(parameter.data, 0)

    def write_gradients(self) -> None:
        """Gradients move when they are summed."""

    def sum_gradients(self, shares: Sequence[float]) -> None:
        """Replace the gradients of every parameter by the sum of all workers' gradients times their shares."""
        share = shares[dist.get_rank()]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad * share for p in self._parameters]
        flat = torch.cat([part.flatten() for part in parts])
        dist.all_reduce(flat)
        for parameter, part in zip(
            self._parameters, torch.split(flat, [p.numel() for p in self._parameters]), strict=True
        ):
            parameter.grad = part.view_as(parameter)


class SharedWeights:
    """The parameters of a model, moved into one file in memory, and a region for the gradients of each worker.

    `owners` has the worker that updates each parameter. `from_first` is that of `Workers`. Pages that nobody writes
    take no memory.
    """

    is_divided = True

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        owners: Sequence[int],
        from_first: Callable[[Callable[[], str]], str],
    ) -> None:
        rank, count = dist.get_rank(), dist.get_world_size()
        self._parameters, self._owners, self._rank = parameters, owners, rank
        size = sum(-(-parameter.numel() // ALIGNMENT) * ALIGNMENT for parameter in parameters)
        created = os.memfd_create("allyouneed") if rank == 0 else -1
        if rank == 0:
            os.truncate(created, 4 * size * (count + 1))
        # The file has no name; the other workers open it through its process.
        path = from_first(lambda: f"/proc/{os.getpid()}/fd/{created}")
        descriptor = created if rank == 0 else os.open(path, os.O_RDWR)
        numbers = torch.frombuffer(mmap.mmap(descriptor, 4 * size * (count + 1)), dtype=torch.float32)
        weights, *self._gradients = (self._views(region) for region in numbers.view(count + 1, size))
        with torch.no_grad():
            for parameter, weight in zip(parameters, weights, strict=True):
                if rank == 0:
                    weight.copy_(parameter)
                parameter.data = weight
        dist.barrier()  # the weights are there, and the file is open
        os.close(descriptor)

    def write_gradients(self) -> None:
        """Write the gradients of this worker for the parameters that others update."""
        pairs = [
            (view, parameter.grad)
            for parameter, view, owner in zip(self._parameters, self._gradients[self._rank], self._owners, strict=True)
            if owner != self._rank and parameter.grad is not None
        ]
        if pairs:
            torch._foreach_copy_([view for view, _ in pairs], [gradient for _, gradient in pairs])

    def sum_gradients(self, shares: Sequence[float]) -> None:
        """Sum the gradients of all workers times their shares; a parameter that another one updates has none.

        To be called when all have written.
        """
        sums: list[Tensor] = []
        for parameter, owner in zip(self._parameters, self._owners, strict=True):
            if owner != self._rank:
                parameter.grad = None
            else:
                sums.append(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
                parameter.grad = sums[-1]
        if not sums:
            return
        torch._foreach_mul_(sums, shares[self._rank])
        for rank, share in enumerate(shares):
            if rank != self._rank and share:
                views = zip(self._gradients[rank], self._owners, strict=True)
                torch._foreach_add_(sums, [view for view, owner in views if owner == self._rank], alpha=share)

    def _views(self, region: Tensor) -> list[Tensor]:
        views, start = [], 0
        for parameter in self._parameters:
            views.append(region[start : start + parameter.numel()].view(parameter.shape))
            start += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
        return views
