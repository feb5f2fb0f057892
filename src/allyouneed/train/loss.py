"""Cross entropy with label smoothing (§5.4; Szegedy et al., 2015).

`smoothed_cross_entropy` is the definition, `mean_loss` its mean over a batch. Training uses
`projected_loss`: the same number from the vectors before the projection, a few rows at a time, so
that the logits of a batch, by far its largest tensor, never exist at once.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def smoothed_cross_entropy(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """How surprised `logits` are by a target that is right with 1 − ε and any word with ε/V.

    Nats per word: −Σ q log softmax(logits), with q the smoothed target. Shapes: logits (…, V),
    target (…) → (…).
    """
    log_probabilities = logits.log_softmax(-1)
    of_target = log_probabilities.gather(-1, target[..., None])[..., 0]
    return -((1 - smoothing) * of_target + smoothing * log_probabilities.mean(-1))


def mean_loss(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    """`smoothed_cross_entropy` over the words of a batch, padding left out: its mean, in nats a word.

    Shapes: logits (B, T, V), target (B, T) → ().
    """
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing)


def projected_loss(
    vectors: Tensor, table: Tensor, target: Tensor, *, smoothing: float, pad_id: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """`mean_loss` of the logits `vectors @ table.T`, and its gradient, without holding the logits.

    Shapes: vectors (B, T, D), table (V, D), target (B, T) → (). Products are taken in `dtype`, sums
    and exponentials in float32.
    """
    words = target != pad_id
    return _ProjectedLoss.apply(vectors[words], table, target[words], smoothing, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _ProjectedLoss(torch.autograd.Function):
    """Loss and gradients in one pass, in blocks of rows; what is not a product, in parts that stay in the cache.

    With p = softmax(logits) and q the smoothed target, the gradient of a row's loss is p − q. The
    part of q that is the same for every word, ε/V, is taken off all rows at once at the end.
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, table: Tensor, target: Tensor, smoothing: float, dtype: torch.dtype
    ) -> Tensor:
        rows, vocabulary = len(vectors), len(table)
        x, w = vectors.to(dtype), table.to(dtype)
        for_vectors, for_table = torch.empty_like(x), torch.zeros_like(table)
        total = torch.zeros((), device=x.device)
        block, part = (max(1, numbers // vocabulary) for numbers in _numbers_at_once(x.device))
        for start in range(0, rows, block):
            here = slice(start, start + block)
            logits = x[here] @ w.T  # (N, D) → (N, V)
            for some, right in zip(torch.split(logits, part), torch.split(target[here, None], part), strict=True):
                total += _into_gradient(some, right, smoothing)
            torch.mm(logits, w, out=for_vectors[here])
            if dtype == table.dtype:
                for_table.addmm_(logits.T, x[here])
            else:
                for_table += logits.T @ x[here]
        spread = smoothing / vocabulary
        sum_of_vectors, sum_of_table = x.sum(0, dtype=table.dtype), w.sum(0, dtype=table.dtype)
        total -= spread * (sum_of_vectors @ sum_of_table)
        for_table.sub_(spread * sum_of_vectors).div_(rows)
        ctx.save_for_backward(((for_vectors - spread * sum_of_table) / rows).to(vectors.dtype), for_table)
        return total / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        for_vectors, for_table = ctx.saved_tensors
        return for_vectors * gradient, for_table * gradient, None, None, None


def _into_gradient(logits: Tensor, right: Tensor, smoothing: float) -> Tensor:
    """Loss of some rows, (N, V) and (N, 1) → (), but for what ε/V adds; `logits` become p less the rest of q."""
    exact = logits.float()
    log_p = exact.log_softmax(-1)
    loss = (smoothing * exact.gather(-1, right) - log_p.gather(-1, right)).sum()
    p = log_p.exp_()
    logits.copy_(p.scatter_add_(-1, right, p.new_full(right.shape, smoothing - 1)))
    return loss


def _numbers_at_once(device: torch.device) -> tuple[int, int]:
    """How many logits are made by one product, and how many of them are looked at together."""
    return (2**23, 2**19) if device.type == "cpu" else (2**27, 2**27)
