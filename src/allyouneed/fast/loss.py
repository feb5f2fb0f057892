"""The loss (§5.4) from the hidden states before the projection, computed in blocks of rows.

`train/loss.py` defines the result. Here the logits of a batch, by far its largest tensor, never exist all at once. If
the batch passes through the model twice with different dropout (R-Drop), the loss also measures how far the two
predictions differ.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from ..train.gradients import autocast, autocast_dtype
from .attention import fused_attention, using_attention


def projected_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """Compute the loss of `train.gradients.batch_loss`, with the projection and the loss fused."""
    batch = (batch.duplicated() if config.r_drop else batch).to(next(model.parameters()).device)
    with autocast(model, config), using_attention(model, fused_attention):
        hidden_states = model.hidden_states(batch.source, batch.target_in)
    pad_id = model.config.effective_target_pad_id
    return loss_of_hidden_states(model, hidden_states, batch.target_out, config, pad_id=pad_id)


def loss_of_hidden_states(
    model: Transformer, hidden_states: Tensor, target: Tensor, config: TrainConfig, *, pad_id: int | None
) -> Tensor:
    """Compute the mean loss of the tokens to predict from the hidden states before the projection: (…, D) → ()."""
    return fused_linear_cross_entropy(
        hidden_states.float(),
        model.projection.table,
        target,
        bias=model.projection.bias,
        smoothing=config.label_smoothing,
        pad_id=pad_id,
        r_drop=config.r_drop,
        dtype=autocast_dtype(config.precision, model),
    )


def fused_linear_cross_entropy(
    hidden_states: Tensor,
    table: Tensor,
    target: Tensor,
    *,
    smoothing: float,
    pad_id: int | None,
    bias: Tensor | None = None,
    r_drop: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Compute `mean_loss` of the logits `hidden_states @ table.T + bias`, and its gradient, without holding all logits.

    With `r_drop`, the second half of the batch repeats the first, and `r_drop` / 2 times the `symmetric_kl` of the two
    halves is added to the loss.

    Shapes: hidden_states (B, T, D), table (V, D), bias (V,), target (B, T) → (). Without padding, `pad_id` is None, and
    hidden_states are (N, D) and target (N,). Products are computed in `dtype`, sums and exponentials in float32.
    """
    if pad_id is not None:
        is_token = target != pad_id
        hidden_states, target = hidden_states[is_token], target[is_token]
    if bias is not None:  # as the weight of another input, which is 1 in every row
        hidden_states = F.pad(hidden_states, (0, 1), value=1.0)
        table = torch.cat((table, bias[:, None]), 1)
    if r_drop:  # the two predictions of a token become neighbouring rows
        hidden_states, target = (torch.stack(rows.chunk(2), 1).flatten(0, 1) for rows in (hidden_states, target))
    return _FusedLinearCrossEntropy.apply(hidden_states, table, target, smoothing, r_drop, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _FusedLinearCrossEntropy(torch.autograd.Function):
    """Loss and gradients in one pass over blocks of rows. Elementwise work uses smaller blocks that fit the CPU cache.

    With p = softmax(logits) and q the smoothed target, the gradient of a row's loss is p − q. The part of q that is
    equal for all tokens, ε/V, is subtracted from all rows at once at the end.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        table: Tensor,
        target: Tensor,
        smoothing: float,
        r_drop: float,
        dtype: torch.dtype,
    ) -> Tensor:
        rows = len(vectors)
        vocabulary = len(table)
        x = vectors.to(dtype)
        w = table.to(dtype)
        block, part = (2 * max(1, numbers // (2 * vocabulary)) for numbers in _block_sizes(x))
        if _is_bfloat16_on_cpu(x):
            block = round_down(block)
            x = F.pad(x, (0, 0, 0, round_up(rows) - rows))
        grad_vectors = torch.empty_like(x)
        grad_table = table.new_zeros(table.shape if dtype == table.dtype else ())
        total = torch.zeros((), device=x.device)
        logits_of_block = x.new_empty(min(block, len(x)), vocabulary)
        for start in range(0, len(x), block):
            block_rows = slice(start, min(start + block, len(x)))
            logits = torch.mm(x[block_rows], w.T, out=logits_of_block[: len(x[block_rows])])  # (N, D) → (N, V)
            right_of_block = target[block_rows, None]
            logits[len(right_of_block) :] = 0
            real = logits[: len(right_of_block)]
            for some, right in zip(torch.split(real, part), torch.split(right_of_block, part), strict=True):
                total += _into_gradient(some, right, smoothing, r_drop)
            torch.mm(logits, w, out=grad_vectors[block_rows])
            if dtype == table.dtype:
                grad_table.addmm_(logits.T, x[block_rows])
            else:
                product = (logits.T @ x[block_rows]).float()  # faster than a sum of two dtypes
                grad_table = grad_table.add_(product) if start else product
        spread = smoothing / vocabulary
        sum_of_vectors = x.sum(0, dtype=table.dtype)
        sum_of_table = w.sum(0, dtype=table.dtype)
        total -= spread * (sum_of_vectors @ sum_of_table)
        grad_table.sub_(spread * sum_of_vectors).div_(rows)
        grad_vectors = grad_vectors[:rows] - spread * sum_of_table
        ctx.save_for_backward((grad_vectors / rows).to(vectors.dtype), grad_table)
        return total / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        grad_vectors, grad_table = ctx.saved_tensors
        return grad_vectors * gradient, grad_table * gradient, None, None, None, None


def _into_gradient(logits: Tensor, right: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """Compute the loss of some rows without its ε/V term, (N, V) and (N, 1) → (), and turn `logits` into its gradient.

    The gradient is p − q, without the ε/V term of q. With R-Drop, the gradient of `_symmetric_kl` is added.
    """
    exact = logits.float()
    if _is_bfloat16_on_cpu(logits) and not r_drop:
        loss = _exponentials_into_gradient(exact, right, smoothing)
        logits.copy_(exact)
        return loss
    log_p = exact.log_softmax(-1)
    loss = (smoothing * exact.gather(-1, right) - log_p.gather(-1, right)).sum()
    if r_drop:
        divergence, gradient = _symmetric_kl(log_p)
        loss += r_drop * divergence
        gradient.mul_(r_drop).add_(log_p.exp_())
    else:
        gradient = log_p.exp_()
    logits.copy_(gradient.scatter_add_(-1, right, gradient.new_full(right.shape, smoothing - 1)))
    return loss


def _exponentials_into_gradient(logits: Tensor, right: Tensor, smoothing: float) -> Tensor:
    """Do the work of `_into_gradient` in place, with one exponential per logit, which stays in the CPU cache."""
    highest = logits.amax(-1, keepdim=True)
    of_right = logits.sub_(highest).gather(-1, right)
    total = logits.exp_().sum(-1, keepdim=True)
    logits.mul_(1 / total).scatter_add_(-1, right, logits.new_full(right.shape, smoothing - 1))
    return (total.log() + smoothing * highest - (1 - smoothing) * of_right).sum()


def _symmetric_kl(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Sum `symmetric_kl` over pairs of adjacent rows, (2N, V) → (), and compute the gradient for their logits.

    With d = log p − log q, the gradient for the logits of p is (p (d − Σ p d) + p − q) / 2.
    """
    log_p = log_p.view(-1, 2, log_p.size(-1))
    p = log_p.exp()
    d = log_p - log_p.flip(1)
    mean_d = (p * d).sum(-1, keepdim=True)
    gradient = (p * (d - mean_d) + p - p.flip(1)) / 2
    return mean_d.sum() / 2, gradient.flatten(0, 1)


def _is_bfloat16_on_cpu(x: Tensor) -> bool:
    return x.dtype == torch.bfloat16 and x.device.type == "cpu"


def _block_sizes(x: Tensor) -> tuple[int, int]:
    """Return two numbers of rows: for the logits of one product, and for one block of elementwise work."""
    if _is_bfloat16_on_cpu(x):
        return 2**23, 2**18
    return (2**23, 2**19) if x.device.type == "cpu" else (2**27, 2**27)


def round_up(rows: int) -> int:
    """Round up to a multiple of both 16 and p / 8, where p is the largest power of two up to `rows`.

    So batches of many different sizes have matrix products of only a few shapes. On a CPU, oneDNN generates machine
    code for every new shape of a product in bfloat16, which takes about 4 ms, longer than most products of a small
    model.
    """
    step = _step(rows)
    return -(-rows // step) * step


def round_down(rows: int) -> int:
    """Round down to a multiple as in `round_up`. If there is none, return `rows` itself."""
    return rows // _step(rows) * _step(rows) or rows


def _step(rows: int) -> int:
    return max(16, 1 << max(0, rows.bit_length() - 4))
