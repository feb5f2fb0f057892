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
    """Loss and gradients in one pass, in blocks of rows small enough to stay in the processor's cache.

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
        block = max(1, _numbers_at_once(x.device) // vocabulary)
        for start in range(0, rows, block):
            here = slice(start, start + block)
            logits = (x[here] @ w.T).float()  # (N, D) → (N, V)
            right = target[here, None]
            top, of_target = logits.amax(-1), logits.gather(-1, right)[:, 0]
            p = logits.softmax(-1)
            # The likeliest word's probability is exp(top) / Σ exp, which gives log Σ exp.
            total += (top - p.amax(-1).log() - (1 - smoothing) * of_target).sum()
            p.scatter_add_(-1, right, p.new_full(right.shape, smoothing - 1))
            gradient = p.to(dtype)
            torch.mm(gradient, w, out=for_vectors[here])
            if dtype == table.dtype:
                for_table.addmm_(gradient.T, x[here])
            else:
                for_table += gradient.T @ x[here]
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


def _numbers_at_once(device: torch.device) -> int:
    return 2**21 if device.type == "cpu" else 2**27
