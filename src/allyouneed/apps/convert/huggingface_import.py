"""A folder of `MarianMTModel` of Hugging Face transformers → a bundle; see huggingface.py for the names of weights."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from torch import Tensor

from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError, DataError
from ...text.backends import EOS, PAD
from ...text.normalize import Normalization
from ...text.sentencepiece import SentencePieceModel, make_tokenizer, order_pieces, with_specials
from ...text.tokenizer import Tokenizer
from ...text.vocabulary import Vocabulary
from .checkpoint_files import read_json_table, read_tensor_file
from .foreign_model import OUR_ACTIVATIONS, SOURCE, TARGET, Checkpoint, StoredWeights, our_value, require_equal
from .huggingface import LOGITS_BIAS, MARIAN
from .vocabularies import normalizer

DEFAULTS: dict[str, Any] = {  # what transformers takes for what a config.json leaves out
    "vocab_size": 58101, "max_position_embeddings": 1024, "d_model": 1024, "activation_function": "gelu",
    "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "dropout": 0.1, "attention_dropout": 0.0,
    "scale_embedding": False, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
    "pad_token_id": 58100, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": 58100,
}  # fmt: skip
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
NEUTRAL: dict[str, Any] = {  # settings of `generate` that have no equal here, and their values that change nothing
    "do_sample": False, "num_beam_groups": 1, "repetition_penalty": 1.0, "num_return_sequences": 1,
    "encoder_no_repeat_ngram_size": 0, "begin_suppress_tokens": None, "forced_bos_token_id": None, "prefix": None,
    "min_new_tokens": None,
}  # fmt: skip


def read_huggingface(folder: Path) -> Checkpoint:
    """What config.json and generation_config.json say."""
    table = DEFAULTS | read_json_table(folder / "config.json")
    for name in ("pad_token_id", "eos_token_id"):
        if type(table[name]) is not int:
            raise CheckpointError(f"config.json has {name}={table[name]!r:.40}; expected a whole number")
    path = folder / "generation_config.json"
    generation = read_json_table(path) if path.is_file() else table  # older folders have one file for both
    vocabulary, normalization = _read_vocabulary(folder, table)
    config = vocabulary.with_vocab_size(_model_config(table))
    _require_ids(table, vocabulary, config)
    tensors = _read_tensors(folder)
    return Checkpoint(
        stored=StoredWeights(tensors, MARIAN, unscaled=() if table["scale_embedding"] else (SOURCE, TARGET)),
        config=replace(config, projection_bias=LOGITS_BIAS in tensors),
        vocabulary=vocabulary,
        decode=_decode_config(generation, vocabulary.target, eos_id=table["eos_token_id"]),
        normalization=normalization,
        languages=_languages(folder),
    )


def _model_config(table: dict[str, Any]) -> ModelConfig:
    """The sizes of the model, but those of its vocabulary."""
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        if table.get(name):
            raise CheckpointError(f"config.json has {name}, as no Marian model has")
    tied = "all" if table["share_encoder_decoder_embeddings"] else "target"
    if not table["tie_word_embeddings"] or not table["scale_embedding"]:
        tied = "none"  # our embeddings are scaled by √d_model, so the projection needs a table of its own otherwise
    return ModelConfig(
        vocab_size=table["vocab_size"],
        pad_id=table["pad_token_id"],
        d_model=table["d_model"],
        d_ff=require_equal("ffn_dim", table["encoder_ffn_dim"], table["decoder_ffn_dim"]),
        heads=require_equal("attention_heads", table["encoder_attention_heads"], table["decoder_attention_heads"]),
        encoder_layers=table["encoder_layers"],
        decoder_layers=table["decoder_layers"],
        activation=our_value("activation_function", table["activation_function"], OUR_ACTIVATIONS | {"silu": "silu"}),
        tied_embeddings=tied,  # type: ignore[arg-type]
        max_length=table["max_position_embeddings"],
        dropout=table["dropout"],
        attention_dropout=table["attention_dropout"],
    )


def _require_ids(table: dict[str, Any], vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Refuse a config whose sizes or special ids are not those of the vocabulary."""
    target = vocabulary.target
    for name, expected in (
        ("vocab_size", config.vocab_size),
        ("decoder_vocab_size", config.effective_target_vocab_size),
        ("pad_token_id", config.pad_id),
        ("eos_token_id", target.eos_id),
        ("decoder_start_token_id", target.sos_id),
    ):
        if table.get(name, expected) != expected:
            raise CheckpointError(f"config.json has {name}={table[name]!r:.40}, but the vocabulary has {expected}")


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if path is None:
        raise CheckpointError(f"{folder} has no weights; expected {' or '.join(WEIGHT_FILES)}")
    tensors = read_tensor_file(path)
    if LOGITS_BIAS in tensors:
        tensors[LOGITS_BIAS] = tensors[LOGITS_BIAS].squeeze(0)  # (1, V)
    return tensors


def _read_vocabulary(folder: Path, table: dict[str, Any]) -> tuple[Vocabulary, Normalization]:
    if (folder / "source.spm").is_file():
        return _marian_vocabulary(folder, table), Normalization(unicode="none", strip_control=False)
    if (folder / "tokenizer.json").is_file():
        return _own_export(folder)
    raise CheckpointError(f"{folder} has no vocabulary; expected source.spm, target.spm and vocab.json")


def _marian_vocabulary(folder: Path, table: dict[str, Any]) -> Vocabulary:
    """Two SentencePiece models, and the ids of their pieces."""
    ids = read_json_table(folder / "vocab.json")
    path = folder / "target_vocab.json"
    target_ids = read_json_table(path) if path.is_file() else ids
    specials = {table["eos_token_id"]: EOS, table["pad_token_id"]: PAD}
    sides = [SentencePieceModel.load(folder / f"{side}.spm") for side in ("source", "target")]
    symbols = [with_specials(order_pieces(one), specials) for one in (ids, target_ids)]
    start = table["decoder_start_token_id"]
    if not isinstance(start, int) or not 0 <= start < len(symbols[1]):
        raise CheckpointError(f"decoder_start_token_id must be an id of the vocabulary; got {start!r:.40}")
    return Vocabulary(
        make_tokenizer(sides[0], symbols[0], start=None),
        make_tokenizer(sides[1], symbols[1], start=symbols[1][start]),
    )


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


def _decode_config(table: dict[str, Any], tokenizer: Tokenizer, *, eos_id: int) -> DecodeConfig:
    """The search of `generate` with these settings."""
    for name, neutral in NEUTRAL.items():
        if table.get(name, neutral) not in (neutral, None):
            raise CheckpointError(
                f"generation_config.json has {name}={table[name]!r:.40}, which has no equal here; remove it there, and "
                "look for a similar setting in docs/decoding.md"
            )
    words = [*(table.get("bad_words_ids") or []), *([i] for i in table.get("suppress_tokens") or [])]
    if any(not isinstance(word, list) or len(word) != 1 for word in words):
        raise CheckpointError("generation_config.json has bad_words_ids of several tokens, which cannot be imported")
    banned = {word[0] for word in words}
    if other := banned - set(tokenizer.banned_ids(unknown=True)):
        raise CheckpointError(f"generation_config.json bans the token {min(other)}; only <pad> and <unk> can be banned")
    # The first counts new tokens and goes before the second, which counts the start token too.
    most = int(table.get("max_new_tokens") or int(table.get("max_length") or 20) - 1)
    return DecodeConfig(
        beam=int(table.get("num_beams") or 1),
        alpha=float(1.0 if table.get("length_penalty") is None else table["length_penalty"]),
        length_penalty="plain",
        early_stopping="beam",
        length_ratio=0.0,
        extra_length=most,
        max_length=most,
        min_length=min(int(table.get("min_length") or 0), most),
        forced_eos=table.get("forced_eos_token_id") == eos_id,
        ban_unknown=tokenizer.unk_id in banned,
        renormalize_logits=bool(table.get("renormalize_logits")),
        no_repeat_ngram_size=int(table.get("no_repeat_ngram_size") or 0),
    )


def _languages(folder: Path) -> tuple[str, str]:
    """Those that the tokenizer names, as in `"source_lang": "pt-BR"`."""
    path = folder / "tokenizer_config.json"
    table = read_json_table(path) if path.is_file() else {}
    return str(table.get("source_lang", "")), str(table.get("target_lang", ""))
