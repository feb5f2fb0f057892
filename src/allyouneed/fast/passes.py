"""Choose the function that computes the loss in a run: a fast function if it equals the definition, or the definition.

When a run begins, a fast function is compared with `train.gradients.batch_loss` on a small batch. The comparison
notices edited files of `nn/`, subclasses, hooks and replaced functions, so what a run trains is what these files say.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import ModelConfig, TrainConfig
from ..data.batch import Batch, pad
from ..errors import AllYouNeedError
from ..machine.device import runs_ahead
from ..nn import MultiHeadAttention, Projection, Transformer
from ..nn.dropout import Dropout
from ..train.gradients import BatchLoss, autocast_dtype, batch_loss
from .bfloat16_forward import bfloat16_loss, is_supported
from .comparison import describe_change, varied_ids
from .loss import loss_of_hidden_states, projected_loss
from .packed import packed_loss
from .packed_attention import load_flash
from .packed_batch import packed_ahead
from .prefetch import prefetch

LENGTHS = (2, 70, 9)  # tokens of the compared sentences; one is longer than a tile of an attention kernel
SEEDS = 0, 1, 2  # three batches, one of which must match: rounding can flip a ReLU, but rarely
# Share of the gradient's norm; the tolerance for the loss is a tenth of it.
TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.15}


def choose_loss(model: Transformer, config: TrainConfig) -> tuple[BatchLoss, str]:
    """Choose the fastest function that equals the definition. If only the definition is left, also say why."""
    fast = fast_loss(model, config)
    if reason := find_difference(fast, model, config):
        return batch_loss, f"{describe_change(model)} ({reason})"
    return fast, ""


def made_ahead(
    batches: Iterator[Batch], loss_of: BatchLoss, model: Transformer, config: TrainConfig
) -> Iterator[Batch]:
    """Yield the same batches. For a GPU, a thread prepares them ahead of time, in the form that `loss_of` needs."""
    if loss_of is packed_loss:
        return packed_ahead(batches, model.config, twice=config.r_drop > 0)
    return prefetch(batches) if runs_ahead(next(model.parameters()).device) else batches


def fast_loss(model: Transformer, config: TrainConfig) -> BatchLoss:
    """Return the fastest function for this model and its device."""
    device = next(model.parameters()).device
    if runs_ahead(device):
        load_flash()
        return packed_loss
    if autocast_dtype(config.precision, model) == torch.bfloat16 and device.type == "cpu" and is_supported(model):
        return bfloat16_loss
    return projected_loss


def find_difference(loss_of: BatchLoss, model: Transformer, config: TrainConfig) -> str:
    """Describe how `loss_of` and its gradients differ from `batch_loss`, beyond rounding; "" if they do not.

    Both functions get the same batch of short and long sentences and the same random numbers, first in float32 and then
    in the precision of `config`. On a GPU there is no dropout, because a batch without padding draws other random
    numbers. The losses are also compared for confident predictions, which an untrained model does not make. The
    gradients and the random numbers of the caller do not change.
    """
    dropout = without_dropout(model) if loss_of is packed_loss else nullcontext()
    with _as_before(model), dropout, exact_products():
        model.train()
        for seed in SEEDS:
            if not (reason := _find_difference(loss_of, model, _small_batch(model, seed), config)):
                break
        else:
            return reason
        return _find_loss_difference(replace(config, precision="float32"))


def _find_difference(loss_of: BatchLoss, model: Transformer, batch: Batch, config: TrainConfig) -> str:
    exact = replace(config, precision="float32")
    right, right_gradients = _loss_and_gradients(batch_loss, model, batch, exact)
    for settings in (exact, config):
        try:
            loss, gradients = _loss_and_gradients(loss_of, model, batch, settings)
        except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            return f"the fast pass cannot compute this model ({type(error).__name__}: {error})"
        tolerance = TOLERANCES[autocast_dtype(settings.precision, model)]
        if not abs(loss - right) <= tolerance / 10 * max(1.0, abs(right)):
            return f"the fast pass has a loss of {loss:.4f}, the model of {right:.4f}"
        difference = float((gradients - right_gradients).norm())
        norm = float(right_gradients.norm())
        if not difference <= tolerance * norm:
            return f"the gradient of the fast pass differs from the model's by {difference / norm:.1%}"
    return ""


class _Confident(nn.Module):
    """A stand-in for a model that predicts the next id with confidence, as an untrained model never does."""

    def __init__(self) -> None:
        super().__init__()
        self.config = ModelConfig(vocab_size=12, d_model=8, heads=1)
        self.projection = Projection(d_model=8, vocab_size=12, bias=True)
        numbers = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))
        self.projection.table = nn.Parameter(F.normalize(numbers))

    def hidden_states(self, _: Tensor, target: Tensor) -> Tensor:
        noise = torch.randn(*target.shape, 8, generator=torch.Generator().manual_seed(1))
        return 5 * self.projection.table[(target + 1) % 12] + noise / 2

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.projection(self.hidden_states(source, target))


@torch.no_grad()
def _find_loss_difference(config: TrainConfig) -> str:
    """Describe how the fused loss differs from the loss of `train/` for confident predictions; "" if it does not."""
    model: Any = _Confident()
    target = torch.stack((torch.arange(1, 12), torch.arange(11, 0, -1)))  # the second row is predicted wrongly
    target[:, 8:] = model.config.pad_id
    batch = Batch(target, target)
    both = batch.duplicated() if config.r_drop else batch
    hidden_states = model.hidden_states(both.source, both.target_in)
    loss = loss_of_hidden_states(model, hidden_states, both.target_out, config, pad_id=model.config.pad_id)
    right = batch_loss(model, batch, config)
    return "" if torch.isclose(loss, right, rtol=1e-4) else f"the fused loss is {loss:.4f} where train/ has {right:.4f}"


def _small_batch(model: Transformer, seed: int) -> Batch:
    config = model.config
    rng = torch.Generator().manual_seed(seed)

    def row(length: int, vocab_size: int, pad_id: int) -> list[int]:
        return varied_ids(min(length, config.max_length), vocab_size, pad_id, rng).tolist()

    sources = [row(length, config.vocab_size, config.pad_id) for length in LENGTHS]
    target_size = config.effective_target_vocab_size
    target_pad = config.effective_target_pad_id
    targets = [row(length + 1, target_size, target_pad) for length in reversed(LENGTHS)]
    return Batch(pad(sources, config.pad_id), pad(targets, target_pad))


@contextmanager
def without_dropout(model: Transformer) -> Iterator[None]:
    """Set every dropout probability to 0 inside the `with` block."""
    kinds = {Dropout: "p", MultiHeadAttention: "dropout"}
    parts = [(part, name) for part in model.modules() for kind, name in kinds.items() if isinstance(part, kind)]
    before = [getattr(part, name) for part, name in parts]
    for part, name in parts:
        setattr(part, name, 0.0)
    try:
        yield
    finally:
        for (part, name), p in zip(parts, before, strict=True):
            setattr(part, name, p)


@contextmanager
def exact_products() -> Iterator[None]:
    """Make a GPU multiply float32 without rounding to TF32 inside the `with` block, even if the caller allowed TF32."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def _loss_and_gradients(
    loss_of: BatchLoss, model: Transformer, batch: Batch, config: TrainConfig
) -> tuple[float, Tensor]:
    torch.manual_seed(0)
    model.zero_grad()
    loss = loss_of(model, batch, config)
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = (torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())
    return loss.item(), torch.cat([gradient.flatten() for gradient in gradients])


@contextmanager
def _as_before(model: Transformer) -> Iterator[None]:
    """Restore mode, gradients and random numbers when the `with` block ends."""
    was_training = model.training
    device = next(model.parameters()).device
    before = [(parameter, parameter.grad) for parameter in model.parameters()]
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        model.train(was_training)
        for parameter, gradient in before:
            parameter.grad = gradient
