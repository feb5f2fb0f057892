"""Weights under the names of `MarianMTModel` → our model: both Marian importers end here."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..bundle import MOST_POSITIONS
from ..config import ModelConfig
from ..errors import CheckpointError
from ..nn import Transformer
from ..nn.position import sinusoids
from ..nn.uninitialized import UninitializedWeights
from ..nn.weights import set_weights
from .checkpoint_files import as_float32
from .huggingface import LOGITS_BIAS, marian_order, weight_names

TABLES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
POSITIONS_OF_MARIAN = {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
POSITION_TOLERANCE = 1e-3  # a checkpoint may hold them in float16


def make_model(config: ModelConfig, stored: dict[str, Tensor], *, scaled: bool = True) -> Transformer:
    """The model with these weights; one whose bias of the logits is zero has none.

    Without `scaled` Marian's model does not multiply its embeddings by √d_model. Refuses other names and shapes before
    memory is taken.
    """
    if config.max_length * config.d_model > MOST_POSITIONS:
        raise CheckpointError(
            f"max_length times d_model must be at most {MOST_POSITIONS}; got {config.max_length} and {config.d_model}"
        )
    with torch.device("meta"), UninitializedWeights():
        empty = Transformer(config)
    made = our_weights(stored, empty, scaled=scaled)
    if not made["projection.bias"].any():
        del made["projection.bias"]
        config = replace(config, projection_bias=False)
    with UninitializedWeights():
        model = Transformer(config)
    set_weights(model, made)
    return model.eval()


def our_weights(stored: dict[str, Tensor], model: Transformer, *, scaled: bool = True) -> dict[str, Tensor]:
    """Marian's weights under our names, the residual stream in our order. Refuses other names and shapes.

    Without `scaled` Marian's model does not multiply its embeddings by √d_model.
    """
    config, expected = model.config, dict(model.named_parameters())
    order = marian_order(config.d_model).argsort()
    known = set(TABLES) | {"model.shared.weight", LOGITS_BIAS}
    ours = {"projection.bias": torch.zeros(config.effective_target_vocab_size)} if config.projection_bias else {}
    for name, (marian, axis) in weight_names(config).items():
        known.add(marian)
        if name not in expected:
            continue
        if marian not in stored and marian in TABLES:
            marian = "model.shared.weight"
        tensor = _read(stored, marian, tuple(expected[name].shape))
        ours[name] = tensor if axis == "none" else tensor.index_select(0 if axis == "rows" else 1, order)
        if not scaled and name.endswith("embedding.table"):
            ours[name] /= math.sqrt(config.d_model)
    if LOGITS_BIAS in stored and config.projection_bias:
        ours["projection.bias"] = _read(stored, LOGITS_BIAS, (1, config.effective_target_vocab_size))[0]
    for name in POSITIONS_OF_MARIAN & stored.keys():
        table = _read(stored, name, (config.max_length, config.d_model)).index_select(1, order)
        if (table - sinusoids(config.max_length, config.d_model)).abs().max() > POSITION_TOLERANCE:
            raise CheckpointError(f"{name} are not the sines and cosines of Marian models")
    if unknown := sorted(stored.keys() - known - POSITIONS_OF_MARIAN):
        raise CheckpointError(f"the weights have {unknown[0]!r:.80}, which no Marian model has")
    return ours


def _read(stored: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    if name not in stored:
        raise CheckpointError(f"the weights lack {name}")
    tensor = as_float32(name, stored[name], shape)
    if not tensor.isfinite().all():
        raise CheckpointError(f"{name} has numbers that are not finite")
    return tensor
