"""The training loop (§5)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from .loss import projected_loss
from .schedule import rate_at


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did: the loss in nats a word (still on the device), the rate, the target's tokens."""

    step: int
    loss: Tensor
    rate: float
    tokens: int


def train(
    model: Transformer,
    optimizer: Optimizer,
    batches: Iterable[Batch],
    config: TrainConfig,
    *,
    after: Callable[[Update], None],
    first: int = 1,
) -> None:
    """Fit `model` (§5): updates number `first` to `config.steps`, telling `after` about each."""
    pad_id, device = model.config.pad_id, next(model.parameters()).device
    dtype: torch.dtype = getattr(torch, config.precision)
    model.train()
    for step, batch in zip(range(first, config.steps + 1), batches, strict=False):
        rate = rate_at(step, config, d_model=model.config.d_model)
        _set_rate(optimizer, rate)
        batch = batch.to(device)
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            vectors = model.vectors(batch.source, batch.target_in)
        loss = projected_loss(
            vectors.float(),
            model.projection.table,
            batch.target_out,
            smoothing=config.label_smoothing,
            pad_id=pad_id,
            dtype=dtype,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        if config.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        after(Update(step, loss.detach(), rate, batch.target_out.numel()))


def _set_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
