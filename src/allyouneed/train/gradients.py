"""The gradients of an update. The loss (§5.4) is the mean over the target tokens of the update's batches.

`batch_loss` defines the loss; `fast/` computes the same loss in less time.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from ..config import TrainConfig
from ..data.batch import Batch
from ..machine.device import has_fast_bfloat16
from ..nn import Transformer
from .loss import mean_loss, symmetric_kl

BatchLoss = Callable[[Transformer, Batch, TrainConfig], Tensor]  # the mean loss of a batch, in nats per token

WIDE = 64  # from this d_model on, products in bfloat16 gain more time than the conversions cost


class Gradients(Protocol):
    """A function that computes the gradients of an update, and adds them to the gradients stored in the model.

    It returns two tensors: the mean loss over the target tokens of all batches, in nats per token, and the norm of the
    gradients.
    """

    def __call__(
        self, model: Transformer, batches: Sequence[Batch], config: TrainConfig, /
    ) -> tuple[Tensor, Tensor]: ...


def batch_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """Compute the mean loss over the target tokens of a batch, in nats per token, with label smoothing.

    With R-Drop (Liang et al., 2021) the batch passes through the model twice, each time with different dropout. The
    loss then includes `config.r_drop` / 2 times the symmetric KL divergence between the two predictions.
    """
    device = next(model.parameters()).device
    pad_id = model.config.effective_target_pad_id
    batch = (batch.duplicated() if config.r_drop else batch).to(device)
    with autocast(model, config):
        logits = model(batch.source, batch.target_in).float()
    loss = mean_loss(logits, batch.target_out, smoothing=config.label_smoothing, pad_id=pad_id)
    if not config.r_drop:
        return loss
    first, second = logits.log_softmax(-1).chunk(2)
    is_token = batch.target_out.chunk(2)[0] != pad_id
    return loss + config.r_drop / 2 * symmetric_kl(first, second)[is_token].mean()


def add_gradients(
    model: Transformer, batches: Sequence[Batch], config: TrainConfig, loss_of: BatchLoss = batch_loss
) -> tuple[Tensor, Tensor]:
    """Add the gradients of the batches' mean loss to the model's gradients; returns as `Gradients` does.

    `loss_of` computes the mean loss of one batch.
    """
    counts = [batch.count_tokens(model.config.effective_target_pad_id) for batch in batches]
    total = torch.zeros((), device=next(model.parameters()).device)
    for batch, tokens in zip(batches, counts, strict=True):
        if tokens:
            loss = tokens / sum(counts) * loss_of(model, batch, config)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
    return total, get_total_norm(parameter.grad for parameter in model.parameters() if parameter.grad is not None)


def autocast(model: Transformer, config: TrainConfig) -> AbstractContextManager[object]:
    """Return a context manager inside which matrix products have the dtype of `config.precision`.

    Weights and sums stay in float32.
    """
    dtype = autocast_dtype(config.precision, model)
    return nullcontext() if dtype == torch.float32 else torch.autocast(next(model.parameters()).device.type, dtype)


def autocast_dtype(precision: str, model: Transformer, device: torch.device | None = None) -> torch.dtype:
    """Choose the dtype of the matrix products in `model`. Weights and sums are always float32.

    "auto" means bfloat16 if the device has fast instructions for bfloat16 and the products are large enough to gain.
    `device` is the device of the model by default.
    """
    if precision == "auto":
        gains = model.config.d_model >= WIDE and has_fast_bfloat16(device or next(model.parameters()).device)
        precision = "bfloat16" if gains else "float32"
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
