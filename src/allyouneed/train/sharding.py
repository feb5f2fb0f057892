"""Sharded training, for a model that does not fit into one process: PyTorch's FSDP2 (`fully_shard`).

Every worker holds a part of each weight, of its gradient and of the optimizer's state. A block's weights are gathered
for its part of the forward and of the backward pass, and its gradients are summed over the workers and divided again.
These exchanges need all workers, so all make the same number of passes, and one that runs out of memory takes part in
the exchanges of the pass to its end; then all repeat the update with smaller micro-batches.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..device import pick_device
from ..errors import is_out_of_memory
from ..nn import Transformer
from ..nn.uninitialized import UninitializedWeights
from . import loop
from .optimizer import Muon, orthogonalize
from .recovery import Gradients, raise_micro_batches
from .workers import Combined, WorkerGroup

_Result = TypeVar("_Result")


class ShardedGroup(WorkerGroup):
    """The processes of the default group of `torch.distributed`, each with a part of every weight."""

    is_sharded = True

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self._config, self._memory = config, MemoryGuard()
        self._device = pick_device(config.device)

    def attach(self, model: Transformer, optimizer: Optimizer) -> None:
        """Divide the weights of the first worker's model; those of the others may be on the device "meta"."""
        if isinstance(model, FSDPModule):
            return
        before = list(model.parameters())
        self._dtype = self.from_first(lambda: loop.autocast_dtype(self._config.precision, model, self._device))
        self._shard(model)
        self._parameters = list(model.parameters())
        for whole, parameter in zip(before, self._parameters, strict=True):
            values = whole.detach() if self.rank == 0 else torch.empty_like(whole, device=self._device)
            assert isinstance(parameter, DTensor)
            part = distribute_tensor(values.to(self._device), parameter.device_mesh, parameter.placements)
            parameter.to_local().detach().copy_(part.to_local())
        divided = {id(whole): parameter for whole, parameter in zip(before, self._parameters, strict=True)}
        for group in optimizer.param_groups:
            group["params"] = [divided[id(parameter)] for parameter in group["params"]]
        if isinstance(optimizer, Muon):
            optimizer.orthogonalize = orthogonalize_divided

    def _shard(self, model: Transformer) -> None:
        mesh = init_device_mesh(self._device.type, (self.count,))
        for block in (*model.encoder.layers, *model.decoder.layers):
            block.forward = self._memory.guarded(block)
            fully_shard(block, mesh=mesh)
            for name in ("project_values", "project_memory_values"):  # a value residual calls those of the first
                if hasattr(block, name):
                    setattr(block, name, _copying(getattr(block, name)))
                    register_fsdp_forward_method(block, name)
        fully_shard(model, mesh=mesh, reshard_after_forward=False)  # the loss needs the projection's table
        register_fsdp_forward_method(model, "hidden_states")
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)  # the losses are weighted already
                module.set_force_sum_reduction_for_comms(True)
        if next(model.parameters()).is_meta:
            buffers = [buffer.clone() for buffer in model.buffers()]
            model.to_empty(device=self._device)
            for buffer, values in zip(model.buffers(), buffers, strict=True):
                buffer.copy_(values)

    def add_gradients(
        self,
        gradients: Gradients,
        model: Transformer,
        batches: Sequence[Batch],
        config: TrainConfig,
        *,
        micro_batches: int,
    ) -> tuple[Tensor, int]:
        """As with other workers, but the loss is a share of the whole batch's, and the gradients are the whole's.

        `gradients` is not used: it makes as many passes as this worker has micro-batches.
        """
        pad_id = model.config.effective_target_pad_id
        tokens = self._gather([sum(batch.count_tokens(pad_id) for batch in batches)]).sum().item()
        while True:
            self._memory.ran_out = False
            loss = sum(
                self._add_pass(model, part, config, tokens)
                for batch in batches
                for part in _exactly(micro_batches, batch)
            )
            largest, ran_out = (
                self._gather([max(len(batch.source) for batch in batches), self._memory.ran_out]).amax(0).tolist()
            )
            if not ran_out:
                return torch.as_tensor(loss), micro_batches
            micro_batches = raise_micro_batches(model, micro_batches, int(largest))

    def _add_pass(self, model: Transformer, part: Batch | None, config: TrainConfig, tokens: float) -> Tensor:
        """The loss of a micro-batch as a share of `tokens` tokens; without one, a pass that changes no gradient."""
        pad_id, dtype = model.config.effective_target_pad_id, self._dtype
        if part is None:
            count, part = 0, Batch(torch.full((1, 1), model.config.pad_id), torch.full((1, 2), pad_id))
        else:
            count = part.count_tokens(pad_id)
            part = part.duplicated() if config.r_drop else part
        part = part.to(self._device)
        with torch.autocast(self._device.type, dtype=dtype, enabled=dtype != torch.float32):
            hidden_states = model.hidden_states(part.source, part.target_in)
        loss = None
        if count and not self._memory.ran_out:
            loss = self._memory.attempt(
                lambda: count / tokens * loop.projected_loss(model, hidden_states, part.target_out, config, dtype)
            )
        if loss is None:  # zero, with zero as gradient of everything
            loss = hidden_states[:0].sum() + sum(p[:0].sum() for p in model.projection.parameters())
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def combine(self, model: Transformer, batches: Sequence[Batch], loss: Tensor, micro_batches: int) -> Combined:
        padded = sum(batch.target_out.numel() for batch in batches)
        gradients = [p.grad.to_local() for p in self._parameters if isinstance(p.grad, DTensor)]
        square = float(get_total_norm(gradients)) ** 2
        losses, squares, sizes = self._gather([float(loss), square, padded]).unbind(1)
        norm, whole = (value.float().to(loss.device) for value in (squares.sum().sqrt(), losses.sum()))
        return Combined(whole, norm, int(sizes.sum()), micro_batches)

    def end_update(self) -> None:
        """Nothing to do: the next exchange of weights waits for all workers."""

    def whole_model(self, model: Transformer) -> Transformer:
        """All weights of the model on the first worker, for validation and for the bundle; takes part everywhere."""
        with UninitializedWeights(), torch.device(self._device if self.rank == 0 else "meta"):
            whole = Transformer(model.config)
        for parameter, target in zip(self._parameters, whole.parameters(), strict=True):
            assert isinstance(parameter, DTensor)
            values = parameter.full_tensor()
            if self.rank == 0:
                target.detach().copy_(values)
        return whole.to(self._device) if self.rank == 0 else whole


class MemoryGuard:
    """Blocks whose failures for want of memory, in both passes, are noted and not raised."""

    ran_out = False

    def guarded(self, block: nn.Module) -> Callable[..., Tensor]:
        """The forward pass of a block; once memory has run out, one that only passes on zeros."""
        forward = block.forward

        def run(*inputs: Tensor) -> Tensor:
            return _Guarded.apply(self, block, forward, *inputs)  # type: ignore[no-any-return, no-untyped-call]

        return run

    def attempt(self, act: Callable[[], _Result]) -> _Result | None:
        """The result of `act`, or None if memory runs out."""
        try:
            return act()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            self.ran_out = True
            return None


class _Guarded(torch.autograd.Function):
    """A block with a graph of its own, so that an exception in its backward pass can be caught."""

    @staticmethod
    def forward(ctx: Any, guard: MemoryGuard, block: nn.Module, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.guard, ctx.block, ctx.output = guard, block, None
        ctx.inputs = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in inputs]
        if not guard.ran_out:
            with torch.enable_grad():
                ctx.output = guard.attempt(lambda: run(*ctx.inputs))
        return _zeros_like(inputs[0]) if ctx.output is None else ctx.output.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.output is not None and not ctx.guard.ran_out:
            ctx.guard.attempt(lambda: torch.autograd.backward(ctx.output, gradient))
        ctx.output = None
        if ctx.guard.ran_out:  # the exchange of gradients needs one of every parameter
            for parameter in ctx.block.parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            return None, None, None, *(_zeros_like(tensor) if tensor.requires_grad else None for tensor in ctx.inputs)
        return None, None, None, *(tensor.grad for tensor in ctx.inputs)


def _copying(project: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same function with a result that is no view, of which FSDP warns."""
    return lambda x: project(x).clone()


def _zeros_like(tensor: Tensor) -> Tensor:
    """Zeros of the same shape, of which only one takes memory; no view, which FSDP warns of."""
    return tensor.new_zeros(1).set_(tensor.new_zeros(1).untyped_storage(), 0, tensor.shape, [0] * tensor.dim())


def _exactly(count: int, batch: Batch) -> list[Batch | None]:
    """The micro-batches of a batch, and None for those that it has not enough pairs for."""
    parts = batch.micro_batches(count)
    return [*parts, *[None] * (count - len(parts))]


def orthogonalize_divided(matrices: list[Tensor]) -> list[Tensor]:
    """`orthogonalize` of matrices of which every worker has some rows; every worker computes some of the matrices.

    Takes as many matrices at a time as there are workers, so that each has one of them whole.
    """
    count, rank = dist.get_world_size(), dist.get_rank()
    rows, columns = matrices[0].shape
    most = -(-rows // count)  # rows of a worker; the last ones may have fewer
    results: list[Tensor] = []
    for begin in range(0, len(matrices), count):
        parts = [matrix.to_local() for matrix in matrices[begin : begin + count] if isinstance(matrix, DTensor)]
        padded = parts[0].new_zeros(count, most, columns)
        for part, space in zip(parts, padded, strict=False):
            space[: len(part)] = part
        whole = torch.empty_like(padded)
        dist.all_to_all_single(whole, padded)
        if rank < len(parts):
            (matrix,) = orthogonalize([whole.view(-1, columns)[:rows]])
            whole.view(-1, columns)[:rows] = matrix
        dist.all_to_all_single(padded, whole)
        for matrix, part, values in zip(matrices[begin:], parts, padded, strict=False):
            assert isinstance(matrix, DTensor)
            results.append(
                DTensor.from_local(
                    values[: len(part)],
                    matrix.device_mesh,
                    matrix.placements,
                    shape=matrix.shape,
                    stride=matrix.stride(),
                )
            )
    return results
