"""The training loop (§5): a generator of updates.

The caller that iterates over `updates` decides what happens between two of them: validate, save, print, stop.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..device import has_fast_bfloat16, runs_ahead
from ..nn import Transformer
from .fast_forward import hidden_states
from .finite_updates import Outcome, skips_on_device, step_on_device
from .loss import fused_linear_cross_entropy, packed_linear_cross_entropy
from .packed_forward import can_pack, pack_batch, packed_hidden_states
from .recovery import with_fitting_micro_batches
from .schedule import learning_rate_at
from .state import TrainState
from .workers import Workers

WIDE = 128  # from this d_model on, products in bfloat16 gain more time than the conversions cost


@dataclass(frozen=True, slots=True)
class Update:
    """The result of one update: mean loss in nats per token (still on the device), learning rate, target tokens.

    `tokens` counts padding, too. `micro_batches` says into how many parts each batch was split to fit into memory;
    `out_of_memory` that this update had to raise that number. `gradient_norm` is that before clipping, still on the
    device. `steps` is the number of the last update, which a time budget plans again and again. `outcome` says whether
    the update was finite.
    """

    step: int
    loss: Tensor
    learning_rate: float
    tokens: int
    gradient_norm: Tensor
    outcome: Outcome
    micro_batches: int = 1
    out_of_memory: bool = False
    steps: int = 0

    @property
    def skipped(self) -> bool:
        """Whether loss or gradient was not finite, so that the weights stayed as they were; makes a GPU wait."""
        return not self.outcome.read()


def updates(
    model: Transformer,
    optimizer: Optimizer,
    batches: Iterable[Batch],
    config: TrainConfig,
    state: TrainState | None = None,
    workers: Workers | None = None,
) -> Iterator[Update]:
    """Fit `model` (§5): perform the updates after `state.step` up to the last, and yield each when it is done.

    The last is number `config.steps`, or that of `state.plan`. `state` counts the updates; on a GPU it knows one update
    later whether one was skipped. Batches that do not fit into memory are split into micro-batches. With several
    `workers`, `batches` are this worker's parts of the batches.
    """
    state, feed, workers = state or TrainState(), iter(batches), workers or Workers()
    model.train()
    while state.step < state.last_step(config) and (group := list(islice(feed, config.accumulate_steps))):
        state.step += 1
        learning_rate = state.learning_rate_factor * learning_rate_at(
            state.position(config), config, d_model=model.config.d_model
        )
        set_learning_rate(optimizer, learning_rate)
        workers.begin_update(config.seed, state.step)
        loss, micro_batches = with_fitting_micro_batches(
            add_gradients, model, group, config, micro_batches=state.micro_batches
        )
        whole = workers.combine(model, group, loss, micro_batches)
        out_of_memory, state.micro_batches = whole.micro_batches > state.micro_batches, whole.micro_batches
        is_finite = (whole.loss + whole.norm).isfinite()
        outcome, on_device = Outcome(is_finite), workers.count == 1 and skips_on_device(optimizer, is_finite.device)
        if on_device or outcome.read():
            if config.clip_norm:
                clip_grads_with_norm_(model.parameters(), config.clip_norm, whole.norm)
            if on_device:
                step_on_device(optimizer, is_finite)
            else:
                optimizer.step()
        optimizer.zero_grad()
        workers.end_update()
        state.outcomes.append(outcome)
        state.count_outcomes(later=1 if on_device else 0)
        yield Update(
            state.step,
            whole.loss,
            learning_rate,
            whole.tokens,
            whole.norm,
            outcome,
            whole.micro_batches,
            out_of_memory,
            state.last_step(config),
        )


def add_gradients(
    model: Transformer, batches: Sequence[Batch], config: TrainConfig, *, micro_batches: int = 1
) -> Tensor:
    """The mean loss over the target tokens of some batches, in nats per token; adds its gradients to the model's.

    Each batch goes through the model in `micro_batches` parts; without dropout that changes nothing. With R-Drop each
    part goes through the model twice, in one batch, with different dropout.
    """
    pad_id, device = model.config.effective_target_pad_id, next(model.parameters()).device
    dtype = autocast_dtype(config.precision, model)
    tokens = sum(batch.count_tokens(pad_id) for batch in batches)
    total, packs = torch.zeros((), device=device), runs_ahead(device) and can_pack(model)
    for batch in batches:
        for part in batch.micro_batches(micro_batches):
            share = part.count_tokens(pad_id) / tokens
            loss = share * (_packed_loss if packs else _padded_loss)(model, part, config, dtype)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
    return total


def _padded_loss(model: Transformer, batch: Batch, config: TrainConfig, dtype: torch.dtype) -> Tensor:
    batch = (batch.duplicated() if config.r_drop else batch).to(model.projection.table.device)
    vectors = hidden_states(model, batch.source, batch.target_in, dtype)
    return projected_loss(model, vectors, batch.target_out, config, dtype)


def _packed_loss(model: Transformer, batch: Batch, config: TrainConfig, dtype: torch.dtype) -> Tensor:
    packed = batch.packed or pack_batch(batch, model, twice=config.r_drop > 0)
    packed = packed.to(model.projection.table.device)
    return packed_linear_cross_entropy(
        packed_hidden_states(model, packed, dtype),
        model.projection.table,
        packed.target_out,
        bias=model.projection.bias,
        smoothing=config.label_smoothing,
        r_drop=config.r_drop,
        dtype=dtype,
    )


def projected_loss(
    model: Transformer, hidden_states: Tensor, target_out: Tensor, config: TrainConfig, dtype: torch.dtype
) -> Tensor:
    """The mean loss of the tokens to predict, with the products of the projection in `dtype`.

    Shapes: hidden_states (B, T, D), target_out (B, T) → ().
    """
    return fused_linear_cross_entropy(
        hidden_states.float(),
        model.projection.table,
        target_out,
        bias=model.projection.bias,
        smoothing=config.label_smoothing,
        pad_id=model.config.effective_target_pad_id,
        r_drop=config.r_drop,
        dtype=dtype,
    )


def autocast_dtype(precision: str, model: Transformer, device: torch.device | None = None) -> torch.dtype:
    """The dtype of the products in `model`, on its device or on `device`; weights and sums are always float32.

    "auto" is bfloat16 where the device has fast instructions for it and the products are large enough to gain.
    """
    if precision == "auto":
        gains = model.config.d_model >= WIDE and has_fast_bfloat16(device or next(model.parameters()).device)
        precision = "bfloat16" if gains else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the learning rate of all parameters for the next update."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
