"""The training loop (§5)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..device import has_fast_bfloat16
from ..nn import Transformer
from .loss import fused_linear_cross_entropy
from .recovery import with_fitting_micro_batches
from .schedule import learning_rate_at
from .state import TrainState

WIDE = 128  # from this d_model on bfloat16 gains more than its conversions cost


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did: the loss in nats a token (still on the device), the rate, the target's tokens.

    One whose loss or gradient was not finite is `skipped`: it left the weights as they were. `pieces`
    says in how many a batch was cut so that it fits into memory.
    """

    step: int
    loss: Tensor
    learning_rate: float
    tokens: int
    skipped: bool = False
    micro_batches: int = 1


def train(
    model: Transformer,
    optimizer: Optimizer,
    batches: Iterable[Batch],
    config: TrainConfig,
    *,
    on_update: Callable[[Update], None],
    state: TrainState | None = None,
) -> None:
    """Fit `model` (§5): the updates after `place` up to `config.steps`, telling `after` about each.

    `place` is kept up to date. Batches that do not fit into memory are learned from in pieces.
    """
    state, feed = state or TrainState(), iter(batches)
    model.train()
    while (
        state.step < config.steps and not state.stopped_early and (group := list(islice(feed, config.accumulate_steps)))
    ):
        state.step += 1
        rate = state.learning_rate_factor * learning_rate_at(state.step, config, d_model=model.config.d_model)
        _set_learning_rate(optimizer, rate)
        loss, state.micro_batches = with_fitting_micro_batches(
            add_gradients, model, group, config, micro_batches=state.micro_batches
        )
        norm = get_total_norm(parameter.grad for parameter in model.parameters() if parameter.grad is not None)
        if is_finite := bool((loss + norm).isfinite()):
            if config.clip_norm:
                clip_grads_with_norm_(model.parameters(), config.clip_norm, norm)
            optimizer.step()
        optimizer.zero_grad()
        state.count_update(is_finite)
        tokens = sum(batch.target_out.numel() for batch in group)
        on_update(Update(state.step, loss, rate, tokens, not is_finite, state.micro_batches))


def add_gradients(
    model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int = 1
) -> Tensor:
    """The mean loss over the words of some batches, in nats a token, its gradients added to the model's.

    Each batch goes through the model in so many `pieces`; without dropout that changes nothing. With
    R-Drop each piece goes through twice, side by side, under other dropout.
    """
    pad_id, device = model.config.effective_target_pad_id, next(model.parameters()).device
    dtype = autocast_dtype(config.precision, model)
    words = [int((batch.target_out != pad_id).sum()) for batch in batches]
    total = torch.zeros((), device=device)
    for batch in batches:
        for piece in batch.micro_batches(micro_batches):
            share = int((piece.target_out != pad_id).sum()) / sum(words)
            piece = (piece.duplicated() if config.r_drop else piece).to(device)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
                vectors = model.hidden_states(piece.source, piece.target_in)
            loss = share * fused_linear_cross_entropy(
                vectors.float(),
                model.projection.table,
                piece.target_out,
                smoothing=config.label_smoothing,
                pad_id=pad_id,
                r_drop=config.r_drop,
                dtype=dtype,
            )
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
    return total


def autocast_dtype(precision: str, model: Transformer) -> torch.dtype:
    """The type of number that products of `model` take and give; weights and sums are float32 always.

    "auto" is bfloat16 where the device is made for it and the products are large enough to gain by it.
    """
    if precision == "auto":
        gains = model.config.d_model >= WIDE and has_fast_bfloat16(next(model.parameters()).device)
        precision = "bfloat16" if gains else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


def _set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
