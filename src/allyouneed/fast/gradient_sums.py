"""How workers sum their gradients and share the weights: each worker updates a part of the parameters.

Each gradient is sent to the worker that updates its weight, and this worker sends the new weight to all others. This
moves as many numbers as an all-reduce, but each worker does only its share of the optimizer's work, which is
considerable with Muon.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

ALIGNMENT = 16  # numbers in a cache line


class DividedWeights:
    """The parameters of a model. Every worker has a copy of all of them, and updates its own part.

    `owners` has the index of the worker that updates each parameter.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], owners: Sequence[int]) -> None:
        self._rank = dist.get_rank()
        self._parts = [
            [parameter for parameter, owner in zip(parameters, owners, strict=True) if owner == rank]
            for rank in range(dist.get_world_size())
        ]
        own = self._parts[self._rank]
        self._others = [rank for rank in range(len(self._parts)) if rank != self._rank]
        self._sizes = [parameter.numel() for parameter in own]
        # How many gradients go to each worker, and come from each. Tensors are kept, because allocating memory is slow.
        self._to_each = [sum(parameter.numel() for parameter in part) for part in self._parts]
        self._to_each[self._rank] = 0
        self._from_each = [0 if rank == self._rank else sum(self._sizes) for rank in range(len(self._parts))]
        self._sent = parameters[0].new_empty(sum(self._to_each), requires_grad=False)
        self._received = parameters[0].new_empty(sum(self._from_each), requires_grad=False)
        self._total = parameters[0].new_empty(sum(self._sizes), requires_grad=False)
        # The weights of each worker's part are one tensor, so that they are sent at once.
        self._weights = [_in_one_piece(part, like=parameters[0]) for part in self._parts]
        weights = torch.cat(self._weights)
        dist.broadcast(weights, 0)
        for here, first in zip(
            self._weights, torch.split(weights, [len(piece) for piece in self._weights]), strict=True
        ):
            here.copy_(first)

    def sum_gradients(self, shares: Sequence[float]) -> Tensor:
        """Sum the gradients of all workers, multiplied by their shares.

        Each worker keeps only the gradients of the parameters that it updates. Returns the norm of the summed gradients
        in this worker's part.
        """
        own = self._parts[self._rank]
        others = [parameter for rank in self._others for parameter in self._parts[rank]]
        if others:
            torch.cat(_flat_gradients(others), out=self._sent)
        dist.all_to_all_single(self._received, self._sent, self._from_each, self._to_each)
        for parameter in others:
            parameter.grad = None
        if not own:
            return torch.zeros(())
        total = torch.cat(_flat_gradients(own), out=self._total).mul_(shares[self._rank])
        for rank, gradients in zip(self._others, self._received.view(len(self._others), -1), strict=True):
            if shares[rank]:
                total.add_(gradients, alpha=shares[rank])
        for parameter, gradient in zip(own, torch.split(total, self._sizes), strict=True):
            parameter.grad = gradient.view_as(parameter)
        norm: Tensor = torch.linalg.vector_norm(total)
        return norm

    def share_weights(self) -> None:
        """Send the weights that this worker has updated to all others, and receive theirs."""
        sending = [dist.broadcast(piece, rank, async_op=True) for rank, piece in enumerate(self._weights) if len(piece)]
        for work in sending:
            work.wait()


def _in_one_piece(parameters: Sequence[nn.Parameter], *, like: Tensor) -> Tensor:
    """Move some parameters into one tensor, each at the beginning of a cache line, and return the tensor."""
    sizes = [-(-parameter.numel() // ALIGNMENT) * ALIGNMENT for parameter in parameters]
    piece = like.new_zeros(sum(sizes), requires_grad=False)
    for parameter, region in zip(parameters, torch.split(piece, sizes), strict=True):
        weight = region[: parameter.numel()].view(parameter.shape)
        weight.copy_(parameter.data)
        parameter.data = weight
    return piece


def _flat_gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
