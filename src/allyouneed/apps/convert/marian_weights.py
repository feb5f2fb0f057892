"""Weights under the names of `MarianMTModel` → our model: both Marian importers end here."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from ...config import ModelConfig
from ...errors import CheckpointError
from ...fast.uninitialized import UninitializedWeights
from ...nn import Transformer
from ...nn.position import sinusoids
from ...nn.weights import set_weights
from ...younger import build_model
from .foreign_weights import StoredWeights, refuse_many_positions
from .huggingface import LOGITS_BIAS, marian_order, weight_names

TABLES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
POSITIONS_OF_MARIAN = {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
POSITION_TOLERANCE = 1e-3  # a checkpoint may hold them in float16


def make_model(config: ModelConfig, stored: dict[str, Tensor], *, scaled: bool = True) -> Transformer:
    """The model with these weights; one whose bias of the logits is zero has none.

    Without `scaled` Marian's model does not multiply its embeddings by √d_model. Refuses other names and shapes before
    memory is taken.
    """
    refuse_many_positions(config)
    with torch.device("meta"), UninitializedWeights():
        empty = build_model(config)
    made = our_weights(StoredWeights(stored), empty, scaled=scaled)
    if not made["projection.bias"].any():
        del made["projection.bias"]
        config = replace(config, projection_bias=False)
    with UninitializedWeights():
        model = build_model(config)
    set_weights(model, made)
    return model.eval()


def our_weights(stored: StoredWeights, model: Transformer, *, scaled: bool = True) -> dict[str, Tensor]:
    """Marian's weights under our names, the residual stream in our order. Refuses other names and shapes.

    Without `scaled` Marian's model does not multiply its embeddings by √d_model.
    """
    config, expected = model.config, dict(model.named_parameters())
    order = marian_order(config.d_model).argsort()
    names = weight_names(config)
    ours = {"projection.bias": torch.zeros(config.effective_target_vocab_size)}
    for name, (marian, axis) in names.items():
        if name not in expected:
            continue
        if marian not in stored and marian in TABLES:
            marian = "model.shared.weight"
        tensor = stored.read(marian, tuple(expected[name].shape))
        ours[name] = tensor if axis == "none" else tensor.index_select(0 if axis == "rows" else 1, order)
        if not scaled and name.endswith("embedding.table"):
            ours[name] /= math.sqrt(config.d_model)
    if LOGITS_BIAS in stored:
        ours["projection.bias"] = stored.read(LOGITS_BIAS, (1, config.effective_target_vocab_size))[0]
    for name in POSITIONS_OF_MARIAN:
        if name in stored:
            table = stored.read(name, (config.max_length, config.d_model)).index_select(1, order)
            if (table - sinusoids(config.max_length, config.d_model)).abs().max() > POSITION_TOLERANCE:
                raise CheckpointError(f"{name} are not the sines and cosines of Marian models")
    stored.require_all_used({*TABLES, "model.shared.weight", *(marian for marian, _ in names.values())}, "Marian")
    return ours
