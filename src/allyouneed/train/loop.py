"""The training loop (§5)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from .loss import mean_loss
from .schedule import paper_rate, share_left


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did: the loss in nats a word (still on the device), the rate, the target's tokens."""

    step: int
    loss: Tensor
    rate: float
    tokens: int


def adam(model: nn.Module) -> Adam:
    """Adam as the paper has it (§5.3); the rate is set before every update."""
    return Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


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
    model.train()
    for step, batch in zip(range(first, config.steps + 1), batches, strict=False):
        rate = config.rate * paper_rate(step, d_model=model.config.d_model, warmup=config.warmup)
        rate *= share_left(step, steps=config.steps, cooldown=config.cooldown)
        _set_rate(optimizer, rate)
        batch = batch.to(device)
        logits = model(batch.source, batch.target_in)
        loss = mean_loss(logits, batch.target_out, smoothing=config.label_smoothing, pad_id=pad_id)
        loss.backward()  # type: ignore[no-untyped-call]
        if config.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        after(Update(step, loss.detach(), rate, batch.target_out.numel()))


def _set_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
