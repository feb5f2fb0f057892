"""The forward pass of a batch of real tokens, without padding: for GPUs.

The modules are those of the model; only embedding and positions take their tokens one by one here, and attention gets
a `PackedMask`. Nothing in it makes the host wait for the device.
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config import TrainConfig
from ..data.batch import Batch, PackedBatch
from ..data.prefetch import prefetch
from ..device import runs_ahead
from ..nn import Embedding, Transformer
from ..nn.custom_parts import is_unchanged
from ..nn.embedding import refuse_unknown_ids
from ..nn.packed import PackedMask, PackedSentences, load_flash
from ..nn.position import refuse_long


def can_pack(model: Transformer) -> bool:
    """Whether `model` consists of the modules of nn/ alone, which know packed batches."""
    if next(model.parameters()).is_cuda:
        load_flash()
    return is_unchanged(model)


def packed_ahead(batches: Iterator[Batch], model: Transformer, config: TrainConfig) -> Iterator[Batch]:
    """The same batches; for a GPU a thread makes them ahead, and packs them in memory from which the GPU copies."""
    if not runs_ahead(next(model.parameters()).device):
        return batches
    if not can_pack(model):
        return prefetch(batches)
    packed = ((batch, pack_batch(batch, model, twice=config.r_drop > 0)) for batch in batches)
    return prefetch(replace(batch, packed=pin(tokens)) for batch, tokens in packed)


def pin(batch: PackedBatch) -> PackedBatch:
    """The same batch in memory from which a GPU copies by itself; without a GPU the batch itself."""
    return batch.pin_memory() if torch.cuda.is_available() else batch


def pack_batch(batch: Batch, model: Transformer, *, twice: bool = False) -> PackedBatch:
    """A batch, or all of it twice, without padding, on the CPU. Refuses what the embedding and positions refuse."""
    config = model.config
    refuse_unknown_ids(batch.source, config.vocab_size)
    refuse_unknown_ids(batch.target, config.effective_target_vocab_size)
    refuse_long(max(batch.source.size(1), batch.target_in.size(1)), config.max_length)
    return (batch.duplicated() if twice else batch).pack(config.pad_id, config.effective_target_pad_id)


def packed_hidden_states(model: Transformer, batch: PackedBatch, dtype: torch.dtype) -> Tensor:
    """`model.hidden_states` of the real tokens of a target, with products in `dtype`, in float32: (M, D)."""
    sources, targets = batch.source_sentences, batch.target_sentences
    with nullcontext() if dtype == torch.float32 else torch.autocast(batch.source.device.type, dtype=dtype):
        x = _embed(model.source_embedding, model.source_position, batch.source, sources)
        memory = model.encoder(x, PackedMask(sources, sources, is_causal=False))
        x = _embed(model.target_embedding, model.target_position, batch.target_in, targets)
        across, itself = PackedMask(targets, sources, is_causal=False), PackedMask(targets, targets, is_causal=True)
        hidden_states: Tensor = model.decoder(x, memory, across, itself)
    return hidden_states[0].float()


def _embed(embedding: Embedding, position: Any, ids: Tensor, sentences: PackedSentences) -> Tensor:
    """(N,) → (1, N, D)."""
    x = F.embedding(ids, embedding.table) * math.sqrt(embedding.d_model)
    dropped: Tensor = position.dropout(x + F.embedding(sentences.positions, position.encoding))
    return dropped[None]
