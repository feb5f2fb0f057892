"""A folder with a Transformer of JoeyNMT → a bundle.

Its sines and cosines are interleaved, as the paper writes them. Its layer norm adds 1e-6 to the variance, ours 1e-5.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError
from ...text.backends import EOS, PAD, SOS, UNK
from ...text.vocabulary import Vocabulary
from .checkpoint_files import choose_file, read_lines_of_text, read_settings_file, read_state
from .foreign_model import (
    OUR_ACTIVATIONS,
    PROJECTION,
    SOURCE,
    TARGET,
    Checkpoint,
    StoredWeights,
    WeightFormat,
    our_value,
    require_equal,
)
from .vocabularies import ImportedSide, merges_side, rename_specials, sentencepiece_side

_DEFAULT_TOKENS = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
_OUR_TOKENS = {"unk_token": UNK, "pad_token": PAD, "bos_token": SOS, "eos_token": EOS}
JOEYNMT = WeightFormat(
    program="JoeyNMT",
    names={
        ".attention_residual.norm": ".layer_norm", ".self_attention_residual.norm": ".x_layer_norm",
        ".cross_attention_residual.norm": ".dec_layer_norm", ".feed_forward_residual.norm": ".feed_forward.layer_norm",
        ".attention": ".src_src_att", ".self_attention": ".trg_trg_att", ".cross_attention": ".src_trg_att",
        ".query": ".q_layer", ".key": ".k_layer", ".value": ".v_layer", ".output": ".output_layer",
        ".inner": ".pwff_layer.0", ".outer": ".pwff_layer.3", ".norm": ".layer_norm", ".gain": ".weight",
        SOURCE: "src_embed.lut.weight", TARGET: "trg_embed.lut.weight", PROJECTION: "decoder.output_layer.weight",
    },
    sinusoids={"encoder.pe.pe": 3, "decoder.pe.pe": 3},
)  # fmt: skip
_LENGTH = 5_000  # positions that JoeyNMT has


def read_joeynmt(folder: Path) -> Checkpoint:
    """The weights decide what the sizes are, and config.yaml what the weights do not show."""
    settings = read_settings_file(folder / "config.yaml")
    _, tensors = read_state(choose_file(folder, "*.ckpt", "best.ckpt"), "model_state", JOEYNMT.program)
    data, parts = _table(settings, "data"), _table(settings, "model")
    source, target = (_side(folder, data, side) for side in ("src", "trg"))
    scaled = _is_scaled(parts)
    stored = StoredWeights(
        tensors,
        JOEYNMT,
        rows={SOURCE: source.rows, TARGET: target.rows, PROJECTION: target.rows},
        unscaled=[name for name, is_scaled in zip((SOURCE, TARGET), scaled, strict=True) if not is_scaled],
    )
    return Checkpoint(
        stored=stored,
        config=_model_config(parts, stored, len(target.rows), scaled=all(scaled)),
        vocabulary=Vocabulary(source.tokenizer, target.tokenizer),
        decode=_decode_config(settings),
        languages=(str(_table(data, "src").get("lang", "")), str(_table(data, "trg").get("lang", ""))),
    )


def _is_scaled(parts: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the embeddings of source and target are multiplied by √d_model; if one table, as the source says."""
    source, target = (bool(_table(_table(parts, stack), "embeddings").get("scale")) for stack in ("encoder", "decoder"))
    return source, source if parts.get("tied_embeddings") else target


def _model_config(parts: Mapping[str, Any], stored: StoredWeights, target_tokens: int, *, scaled: bool) -> ModelConfig:
    """The sizes of the weights, and what only the settings say; those of the vocabulary are left out."""
    encoder, decoder = _table(parts, "encoder"), _table(parts, "decoder")
    norms = []
    for stack, table, default in (("encoder", encoder, "pre"), ("decoder", decoder, "post")):
        if table.get("type") != "transformer":
            raise CheckpointError(f"the {stack} has type={table.get('type')!r:.40}; only transformer can be imported")
        if table.get("alpha", 1.0) != 1.0:
            raise CheckpointError(
                f"the {stack} has alpha={table['alpha']!r:.40}, a factor of residual connections; "
                "only 1 can be imported"
            )
        closed = f"{stack}.layer_norm.weight" in stored
        norm = table.get("layer_norm", "pre" if closed else default)
        if norm not in ("pre", "post") or closed != (norm == "pre"):
            raise CheckpointError(
                f"the {stack} has layer_norm={norm!r:.40}, and its weights have {'a' if closed else 'no'} norm after "
                "the last layer; only pre with one and post without one can be imported"
            )
        norms.append(norm)
    activation = require_equal("activation", *(table.get("activation", "relu") for table in (encoder, decoder)))
    _, d_model = stored.sizes(JOEYNMT.name(SOURCE), 2)
    d_ff, _ = stored.sizes("encoder.layers.0.feed_forward.pwff_layer.0.weight", 2)
    return ModelConfig(
        d_model=d_model,
        d_ff=d_ff,
        heads=require_equal("num_heads", encoder.get("num_heads", 4), decoder.get("num_heads", 8)),
        encoder_layers=stored.layers("encoder"),
        decoder_layers=stored.layers("decoder"),
        activation=our_value("activation", activation, OUR_ACTIVATIONS),
        norm=require_equal("layer_norm", *norms),
        positions="sinusoidal",
        tied_embeddings=stored.find_tied(
            (target_tokens, d_model),
            joint=scaled and bool(parts.get("tied_softmax") and parts.get("tied_embeddings")),
            target=scaled and bool(parts.get("tied_softmax")),
        ),
        max_length=_LENGTH,
        dropout=float(encoder.get("dropout", 0.1)),
        attention_dropout=float(encoder.get("dropout", 0.1)),
    )


def _side(folder: Path, data: Mapping[str, Any], side: str) -> ImportedSide:
    path, table = folder / f"{side}_vocab.txt", _table(data, side)
    tokens = _DEFAULT_TOKENS | {
        name: value for name, value in _table(data, "special_symbols").items() if isinstance(value, str)
    }
    if tokens.get("sep_token") or _table(data, "special_symbols").get("lang_tags"):
        raise CheckpointError(
            "the model has a separator or language tags (sep_token, lang_tags), which cannot be imported"
        )
    names = {tokens[name]: ours for name, ours in _OUR_TOKENS.items()}
    symbols = rename_specials(read_lines_of_text(path), names, path)
    start = None if side == "src" else SOS
    kind = table.get("tokenizer_type", table.get("bpe_type", "sentencepiece"))
    if table.get("level") != "bpe" or kind not in ("sentencepiece", "subword-nmt"):
        raise CheckpointError(
            f"data.{side} has level={table.get('level')!r:.40} and tokenizer_type={kind!r:.40}; only level bpe with "
            "sentencepiece or subword-nmt can be imported"
        )
    files = _table(table, "tokenizer_cfg")
    if files.get("separator", "@@") != "@@":
        raise CheckpointError(f"data.{side} has the separator {files['separator']!r:.40}; only @@ can be imported")
    if kind == "sentencepiece":
        return sentencepiece_side(_beside(folder, files, "model_file"), symbols, start=start, restricted=True)
    return merges_side(_beside(folder, files, "codes"), symbols, start=start)


def _beside(folder: Path, names: Mapping[str, Any], key: str) -> Path:
    """A file that the settings name by any path, in the folder of the checkpoint, where JoeyNMT copies it."""
    if not isinstance(names.get(key), str):
        raise CheckpointError(f"config.yaml must name the file {key} in tokenizer_cfg; got {names.get(key)!r:.40}")
    return folder / re.split(r"[/\\]", names[key])[-1]


def _decode_config(settings: Mapping[str, Any]) -> DecodeConfig:
    """The search of the section `testing`."""
    table = _table(settings, "testing")
    alpha = float(table.get("beam_alpha", table.get("alpha", -1)))
    if table.get("repetition_penalty", -1) not in (-1, 1):
        raise CheckpointError(
            f"config.yaml has repetition_penalty={table['repetition_penalty']!r:.40} in testing, which has no equal "
            "here; remove it there, and look for a similar setting in docs/decoding.md"
        )
    return DecodeConfig(
        beam=int(table.get("beam_size", 1)),
        alpha=max(0.0, alpha),
        length_penalty="gnmt",
        max_length=max(0, int(table.get("max_output_length", 0))),
        min_length=1 + int(table.get("min_output_length", 1)),  # theirs does not count the end token
        no_repeat_ngram_size=max(0, int(table.get("no_repeat_ngram_size", 0))),
        ban_unknown=not table.get("generate_unk", True),
    )


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = settings.get(name) or {}
    if not isinstance(value, Mapping):
        raise CheckpointError(f"config.yaml must have a table {name}; got {value!r:.40}")
    return value
