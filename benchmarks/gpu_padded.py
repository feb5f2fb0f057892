"""The shortest training that could be as fast as the packed one: padding kept small, and PyTorch's own parts.

Batches have narrow ranges of lengths, attention is `scaled_dot_product_attention`, the loss `F.linear_cross_entropy`
where this PyTorch has it. If it is as fast on a card, packed batches and their attention are not needed.
"""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch, collate
from allyouneed.data.pairs import EncodedPairs
from allyouneed.fast.attention import using_attention
from allyouneed.fast.prefetch import prefetch
from allyouneed.machine.device import move, staged
from allyouneed.nn import Transformer
from allyouneed.train.gradients import autocast, autocast_dtype


class StagedBatch(Batch):
    """A batch whose sides are in memory from which a GPU copies by itself."""

    def __init__(self, batch: Batch, device: torch.device) -> None:
        super().__init__(staged(batch.source, device), batch.target)
        for name in ("target_in", "target_out"):
            object.__setattr__(self, f"_{name}", staged(getattr(batch, name).contiguous(), device))

    @property
    def target_in(self) -> Tensor:
        """As in `Batch`."""
        return self._target_in  # type: ignore[attr-defined, no-any-return]

    @property
    def target_out(self) -> Tensor:
        """As in `Batch`."""
        return self._target_out  # type: ignore[attr-defined, no-any-return]


def staged_ahead(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """Make batches ahead in a thread, as `packed_ahead` does."""
    return prefetch(StagedBatch(batch, device) for batch in batches)


def narrow_batches(pairs: EncodedPairs, *, batch_tokens: int, pad_id: int) -> list[Batch]:
    """Cut pairs, ordered by source length and then by target length, into batches of at most `batch_tokens` a side."""
    everything = np.arange(len(pairs), dtype=np.int32)
    lengths = np.stack((pairs.source.lengths(everything), pairs.target.lengths(everything)))
    order = np.lexsort((lengths[1], lengths[0]))
    found, start, longest = [], 0, 0
    for end, size in enumerate(lengths.max(0)[order].tolist()):
        if end > start and max(longest, size) * (end + 1 - start) > batch_tokens:
            found.append(collate(pairs, order[start:end].astype(np.int32), pad_id=pad_id))
            start, longest = end, 0
        longest = max(longest, size)
    return [*found, collate(pairs, order[start:].astype(np.int32), pad_id=pad_id)]


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *, dropout: float = 0.0
) -> Tensor:
    """Compute equation 1; the causal mask, which hides padding too, needs no memory."""
    if attn_mask is not None and attn_mask.dim() == 2:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropout)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, dropout_p=dropout)


def padded_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """As `train.gradients.batch_loss`, without R-Drop and without waiting for a GPU."""
    with autocast(model, config), using_attention(model, attention):
        hidden_states = model.hidden_states(batch.source, batch.target_in)
    dtype, pad_id = autocast_dtype(config.precision, model), model.config.effective_target_pad_id
    x, table = hidden_states.flatten(0, 1).to(dtype), model.projection.table.to(dtype)
    right = move(batch.target_out, x.device).flatten()
    if hasattr(F, "linear_cross_entropy"):
        return F.linear_cross_entropy(x, table, right, ignore_index=pad_id, label_smoothing=config.label_smoothing)
    logits = F.linear(x, table).float()
    return F.cross_entropy(logits, right, ignore_index=pad_id, label_smoothing=config.label_smoothing)
