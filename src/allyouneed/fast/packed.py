"""The loss of a batch without its padding, for GPUs.

The modules are the model's own. This file only embeds the tokens and adds their positions in another way, and gives
attention a `PackedMask`. The program never waits for the GPU.
"""

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch
from ..machine.device import move
from ..nn import Embedding, Transformer
from ..train.gradients import autocast
from .attention import using_attention
from .loss import loss_of_hidden_states
from .packed_attention import PackedMask, packed_attention
from .packed_batch import PackedAhead, PackedBatch, pack_batch


def packed_loss(model: Transformer, batch: Batch, config: TrainConfig) -> Tensor:
    """Compute the loss of `train.gradients.batch_loss`, without padding."""
    device = next(model.parameters()).device
    if not isinstance(batch, PackedAhead):
        batch = PackedAhead(batch.source, batch.target, pack_batch(batch, model.config, twice=config.r_drop > 0))
    packed = batch.packed.each(lambda numbers: move(numbers, device))
    with autocast(model, config), using_attention(model, packed_attention):
        hidden_states = packed_hidden_states(model, packed)
    return loss_of_hidden_states(model, hidden_states, packed.target_out, config, pad_id=None)


def packed_hidden_states(model: Transformer, batch: PackedBatch) -> Tensor:
    """Compute `model.hidden_states` for the tokens of a target: (M, D)."""
    sources = batch.source_sentences
    targets = batch.target_sentences
    x = embed_tokens(model.source_embedding, model.source_position, batch.source, sources.positions)[None]
    memory = model.encoder(x, PackedMask(sources, sources, is_causal=False))
    x = embed_tokens(model.target_embedding, model.target_position, batch.target_in, targets.positions)[None]
    across = PackedMask(targets, sources, is_causal=False)
    itself = PackedMask(targets, targets, is_causal=True)
    return model.decoder(x, memory, across, itself)[0]


def embed_tokens(embedding: Embedding, position: Any, ids: Tensor, positions: Tensor) -> Tensor:
    """Embed ids at the given positions, without checking them. Both broadcast to (…); returns (…, D)."""
    x = F.embedding(ids, embedding.table) * math.sqrt(embedding.d_model)
    embedded: Tensor = position.dropout(x + F.embedding(positions, position.encoding))
    return embedded
