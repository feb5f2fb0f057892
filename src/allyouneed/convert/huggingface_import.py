"""A folder of `MarianMTModel` of Hugging Face transformers → a bundle; see huggingface.py for the names of weights."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..bundle import Bundle
from ..config import DecodeConfig, ModelConfig
from ..corpus.normalize import Normalization
from ..errors import CheckpointError, ConfigError, DataError
from ..nn import Transformer
from ..nn.uninitialized import UninitializedWeights
from ..nn.weights import set_weights
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .checkpoint_files import as_float32, read_json_table, read_tensor_file
from .exported_tokenizer import normalizer
from .huggingface import MARIAN_ACTIVATIONS, marian_order, weight_names

DEFAULTS: dict[str, Any] = {  # what transformers takes for what a config.json leaves out
    "vocab_size": 58101, "max_position_embeddings": 1024, "d_model": 1024, "activation_function": "gelu",
    "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "dropout": 0.1, "attention_dropout": 0.0,
    "scale_embedding": False, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
    "pad_token_id": 58100, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": 58100,
}  # fmt: skip
OUR_ACTIVATIONS = {marian: ours for ours, marian in MARIAN_ACTIVATIONS.items()} | {"silu": "silu"}
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")


class HuggingFaceImporter:
    """An `Importer` for folders of `MarianMTModel`."""

    program = "Hugging Face Marian"
    looks_like = 'config.json with "model_type": "marian"'

    def recognizes(self, folder: Path) -> bool:
        """Whether config.json says so."""
        try:
            return read_json_table(folder / "config.json").get("model_type") == "marian"
        except CheckpointError:
            return False

    def read(self, folder: Path) -> Bundle:
        """The folder as a bundle."""
        table = DEFAULTS | read_json_table(folder / "config.json")
        vocabulary, normalization = _read_vocabulary(folder)
        config = vocabulary.with_vocab_size(_model_config(table))
        _require_ids(table, vocabulary, config)
        return Bundle(
            _read_model(folder, config),
            vocabulary.source,
            vocabulary.target,
            _decode_config(folder),
            normalization=normalization,
        )


def _model_config(table: dict[str, Any]) -> ModelConfig:
    """The sizes of the model, but those of its vocabulary."""
    for name in ("attention_heads", "ffn_dim"):
        if table[f"encoder_{name}"] != table[f"decoder_{name}"]:
            raise CheckpointError(
                f"encoder and decoder must have the same {name}; "
                f"got {table[f'encoder_{name}']!r:.20} and {table[f'decoder_{name}']!r:.20}"
            )
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if table.get(name):
            raise CheckpointError(f"config.json has {name}, as no Marian model has")
    if table["activation_function"] not in OUR_ACTIVATIONS:
        raise CheckpointError(
            f"activation_function must be one of {', '.join(OUR_ACTIVATIONS)}; got {table['activation_function']!r:.40}"
        )
    if not table["scale_embedding"]:
        raise CheckpointError("embeddings are multiplied by √d_model here; this model has scale_embedding=false")
    tied = (
        "none" if not table["tie_word_embeddings"] else "all" if table["share_encoder_decoder_embeddings"] else "target"
    )
    try:
        return ModelConfig(
            vocab_size=table["vocab_size"],
            pad_id=table["pad_token_id"],
            d_model=table["d_model"],
            d_ff=table["encoder_ffn_dim"],
            heads=table["encoder_attention_heads"],
            encoder_layers=table["encoder_layers"],
            decoder_layers=table["decoder_layers"],
            activation=OUR_ACTIVATIONS[table["activation_function"]],  # type: ignore[arg-type]
            tied_embeddings=tied,  # type: ignore[arg-type]
            max_length=table["max_position_embeddings"],
            dropout=table["dropout"],
            attention_dropout=table["attention_dropout"],
        )
    except ConfigError as error:
        raise CheckpointError(f"config.json describes no model that a bundle can hold: {error}") from error


def _require_ids(table: dict[str, Any], vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Refuse a config whose sizes or special ids are not those of the vocabulary."""
    target = vocabulary.target
    for name, expected in (
        ("vocab_size", config.vocab_size),
        ("pad_token_id", config.pad_id),
        ("eos_token_id", target.eos_id),
        ("decoder_start_token_id", target.sos_id),
    ):
        if table[name] != expected:
            raise CheckpointError(f"config.json has {name}={table[name]!r:.40}, but the vocabulary has {expected}")


def _read_model(folder: Path, config: ModelConfig) -> Transformer:
    path = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if path is None:
        raise CheckpointError(f"{folder} has no weights; expected {' or '.join(WEIGHT_FILES)}")
    try:
        with UninitializedWeights():
            model = Transformer(config).eval()
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    set_weights(model, our_weights(read_tensor_file(path), model))
    return model


def our_weights(stored: dict[str, Tensor], model: Transformer) -> dict[str, Tensor]:
    """Marian's weights under our names, the residual stream in our order. Refuses other names and shapes."""
    config, expected = model.config, dict(model.named_parameters())
    order = marian_order(config.d_model).argsort()
    tables = dict.fromkeys(
        ("source_embedding.table", "target_embedding.table", "projection.table"), "model.shared.weight"
    )
    ours = {}
    for name, (marian, axis) in weight_names(config).items():
        if name not in expected:
            continue
        if marian not in stored and name in tables:
            marian = tables[name]
        if marian not in stored:
            raise CheckpointError(f"the weights lack {marian}")
        tensor = as_float32(marian, stored[marian], tuple(expected[name].shape))
        if not tensor.isfinite().all():
            raise CheckpointError(f"{marian} has numbers that are not finite")
        ours[name] = tensor if axis == "none" else tensor.index_select(0 if axis == "rows" else 1, order)
    bias = stored.get("final_logits_bias", torch.zeros(1))
    if bias.any():
        raise CheckpointError("the model has a bias of its logits (final_logits_bias)")
    return ours


def _read_vocabulary(folder: Path) -> tuple[Vocabulary, Normalization]:
    if not (folder / "tokenizer.json").is_file():
        raise CheckpointError(f"{folder} has no tokenizer that can be read; expected tokenizer.json")
    return _own_export(folder)


def _own_export(folder: Path) -> tuple[Vocabulary, Normalization]:
    """The vocabulary and the normalization of a folder that our own export wrote."""
    table = read_json_table(folder / "tokenizer.json")
    for unicode, strip_control in product(("NFC", "NFKC", "none"), (True, False)):
        normalization = Normalization(unicode=unicode, strip_control=strip_control)  # type: ignore[arg-type]
        for vocabulary in (None, {"type": "Prepend", "prepend": " "}):
            if table.get("normalizer") == normalizer(normalization, vocabulary):
                try:
                    tokenizer = Tokenizer.from_json(json.dumps(table | {"normalizer": vocabulary}))
                except (DataError, ConfigError) as error:
                    raise CheckpointError(f"{folder}/tokenizer.json: {error}") from error
                return Vocabulary(tokenizer, tokenizer), normalization
    raise CheckpointError(f"{folder}/tokenizer.json normalizes text in another way than our exports do")


def _decode_config(folder: Path) -> DecodeConfig:
    path = folder / "generation_config.json"
    table = read_json_table(path) if path.is_file() else {}
    try:
        return DecodeConfig(
            beam=table.get("num_beams") or 1,
            alpha=float(table.get("length_penalty") or 1.0),
            length_penalty="plain",
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise CheckpointError(f"generation_config.json: {error}") from error
