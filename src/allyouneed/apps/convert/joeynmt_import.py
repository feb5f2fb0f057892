"""A folder with a Transformer of JoeyNMT → a bundle.

Its sines and cosines are interleaved, as the paper writes them. Its layer norm adds 1e-6 to the variance, ours 1e-5.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ...bundle import Bundle
from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError
from ...nn.position import sinusoids
from ...text.backends import EOS, PAD, SOS, UNK
from ...text.normalize import Normalization
from ...text.vocabulary import Vocabulary
from .checkpoint_files import read_limited, read_pickle_safely, require_tensors
from .foreign_weights import StoredWeights, build_imported_model
from .marian_files import LARGEST_SETTINGS, read_settings
from .subword_vocabulary import ImportedSide, merges_side, read_lines_of_text, rename_specials, sentencepiece_side

_DEFAULT_TOKENS = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
_OUR_TOKENS = {"unk_token": UNK, "pad_token": PAD, "bos_token": SOS, "eos_token": EOS}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
_TABLES = {
    "source_embedding.table": "src_embed.lut.weight",
    "target_embedding.table": "trg_embed.lut.weight",
    "projection.table": "decoder.output_layer.weight",
}
_PARTS = {  # of a layer: ours, JoeyNMT's
    "encoder": {
        "attention": "src_src_att",
        "attention_residual.norm": "layer_norm",
    },
    "decoder": {
        "self_attention": "trg_trg_att",
        "self_attention_residual.norm": "x_layer_norm",
        "cross_attention": "src_trg_att",
        "cross_attention_residual.norm": "dec_layer_norm",
    },
}
_FEED_FORWARD = {
    "feed_forward.inner": "feed_forward.pwff_layer.0",
    "feed_forward.outer": "feed_forward.pwff_layer.3",
    "feed_forward_residual.norm": "feed_forward.layer_norm",
}
_LINEAR = {"query": "q_layer", "key": "k_layer", "value": "v_layer", "output": "output_layer"}
_POSITIONS = ("encoder.pe.pe", "decoder.pe.pe")
_POSITION_TOLERANCE = 1e-3  # float32 computes the sines of large angles so
_LENGTH = 5_000  # positions that JoeyNMT has


class JoeyNMTImporter:
    """An `Importer` for the folder of a training of JoeyNMT."""

    program = "JoeyNMT"
    looks_like = "config.yaml, src_vocab.txt, trg_vocab.txt and best.ckpt"

    def recognizes(self, folder: Path) -> bool:
        """Whether there are a vocabulary and a checkpoint."""
        return (folder / "src_vocab.txt").is_file() and any(folder.glob("*.ckpt"))

    def read(self, folder: Path) -> Bundle:
        """The folder as a bundle."""
        path = folder / "config.yaml"
        settings = read_settings(read_limited(path, LARGEST_SETTINGS), str(path))
        path = _checkpoint(folder)
        state = read_pickle_safely(path)
        if not isinstance(state, Mapping) or "model_state" not in state:
            raise CheckpointError(f"{path} is no checkpoint of JoeyNMT: it has no table named model_state")
        stored = StoredWeights(require_tensors(state["model_state"], f"{path}, model_state,"))
        data, parts = _table(settings, "data"), _table(settings, "model")
        sides = [_side(folder, data, side) for side in ("src", "trg")]
        vocabulary = Vocabulary(sides[0].tokenizer, sides[1].tokenizer)
        encoder, decoder = _table(parts, "encoder"), _table(parts, "decoder")
        scaled = _is_scaled(parts, encoder, decoder)
        try:
            config = vocabulary.with_vocab_size(_model_config(parts, stored, sides, scaled=all(scaled)))
            decode = _decode_config(settings)
        except (ConfigError, TypeError, ValueError) as error:
            raise CheckpointError(f"{folder} describes no model that a bundle can hold: {error}") from error
        weights = JoeyNMTWeights(stored, config, sides, scaled)
        model = build_imported_model(config, weights.weight)
        weights.compare_the_rest()
        stored.require_all_used((), self.program)
        return Bundle(
            model,
            vocabulary.source,
            vocabulary.target,
            decode,
            normalization=Normalization(unicode="none", strip_control=False),
            languages=_languages(data),
        )


class JoeyNMTWeights:
    """The tensors of a checkpoint under our names."""

    def __init__(
        self, stored: StoredWeights, config: ModelConfig, sides: list[ImportedSide], scaled: tuple[bool, bool]
    ) -> None:
        self.stored, self.config = stored, config
        self.scaled = dict(zip(_TABLES, scaled, strict=False))
        self.rows = dict(zip(_TABLES, (sides[0].rows, sides[1].rows, sides[1].rows), strict=True))

    def weight(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """One by our name."""
        if name not in _TABLES:
            return self.stored.read(_their_name(name), shape)
        rows = self.rows[name]
        table = self.stored.read(_TABLES[name], (len(rows), self.config.d_model))[rows]
        return table if self.scaled.get(name, True) else table / math.sqrt(self.config.d_model)

    def compare_the_rest(self) -> None:
        """Read tables that are tied, and compare the positions with ours."""
        for name in _TABLES:
            if _TABLES[name] in self.stored:
                self.weight(name, ())
        for name in _POSITIONS:
            if name in self.stored:
                _, count, _ = self.stored.sizes(name, 3)
                table = self.stored.read(name, (1, count, self.config.d_model))[0, : self.config.max_length]
                if (table - sinusoids(len(table), self.config.d_model)).abs().max() > _POSITION_TOLERANCE:
                    raise CheckpointError(f"{name} are not the sines and cosines of JoeyNMT")


def _their_name(name: str) -> str:
    """`encoder.layers.0.attention.query.weight` → `encoder.layers.0.src_src_att.q_layer.weight`."""
    kinds = {"gain": "weight", "bias": "bias", "weight": "weight"}
    stem, kind = name.rsplit(".", 1)
    if stem in ("encoder.norm", "decoder.norm"):
        return f"{stem.replace('norm', 'layer_norm')}.{kinds[kind]}"
    stack, _, number, part = stem.split(".", 3)
    parts = _PARTS[stack] | _FEED_FORWARD
    if part in parts:
        part = parts[part]
    else:
        attention, linear = part.split(".")
        part = f"{parts[attention]}.{_LINEAR[linear]}"
    return f"{stack}.layers.{number}.{part}.{kinds[kind]}"


def _is_scaled(parts: Mapping[str, Any], encoder: Mapping[str, Any], decoder: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the embeddings of source and target are multiplied by √d_model; if one table, as the source says."""
    source, target = (bool(_table(side, "embeddings").get("scale", False)) for side in (encoder, decoder))
    return source, source if parts.get("tied_embeddings") else target


def _model_config(
    parts: Mapping[str, Any], stored: StoredWeights, sides: list[ImportedSide], *, scaled: bool
) -> ModelConfig:
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
    heads = (encoder.get("num_heads", 4), decoder.get("num_heads", 8))
    activations = tuple(table.get("activation", "relu") for table in (encoder, decoder))
    for name, values in (("num_heads", heads), ("activation", activations), ("layer_norm", norms)):
        if values[0] != values[1]:
            raise CheckpointError(
                f"encoder and decoder must have the same {name}; got {values[0]!r:.20} and {values[1]!r:.20}"
            )
    if activations[0] not in _ACTIVATIONS:
        raise CheckpointError(f"activation must be one of {', '.join(_ACTIVATIONS)}; got {activations[0]!r:.40}")
    _, d_model = stored.sizes(_TABLES["source_embedding.table"], 2)
    d_ff, _ = stored.sizes("encoder.layers.0.feed_forward.pwff_layer.0.weight", 2)
    return ModelConfig(
        d_model=d_model,
        d_ff=d_ff,
        heads=heads[0],
        encoder_layers=stored.layers("encoder"),
        decoder_layers=stored.layers("decoder"),
        activation=_ACTIVATIONS[activations[0]],  # type: ignore[arg-type]
        norm=norms[0],
        positions="sinusoidal",
        tied_embeddings=_tied(parts, stored, (len(sides[1].rows), d_model)) if scaled else "none",
        max_length=_LENGTH,
        dropout=float(encoder.get("dropout", 0.1)),
        attention_dropout=float(encoder.get("dropout", 0.1)),
    )


def _tied(parts: Mapping[str, Any], stored: StoredWeights, shape: tuple[int, int]) -> Any:
    source, target, projection = _TABLES.values()
    if not parts.get("tied_softmax") or not stored.are_equal((target, projection), shape):
        return "none"
    return "all" if parts.get("tied_embeddings") and stored.are_equal((source, target), shape) else "target"


def _checkpoint(folder: Path) -> Path:
    paths = sorted(folder.glob("*.ckpt"))
    if folder / "best.ckpt" in paths:
        return folder / "best.ckpt"
    if len(paths) != 1:
        raise CheckpointError(f"{folder} has {len(paths)} checkpoints; name the one to import best.ckpt")
    return paths[0]


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


def _languages(data: Mapping[str, Any]) -> tuple[str, str]:
    codes = [str(_table(data, side).get("lang") or "") for side in ("src", "trg")]
    source, target = (code if re.fullmatch("[a-z]{2,3}", code) else "" for code in codes)
    return source, target


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
        copy_untranslatable=False,
        retry_repetition=False,
    )


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = settings.get(name) or {}
    if not isinstance(value, Mapping):
        raise CheckpointError(f"config.yaml must have a table {name}; got {value!r:.40}")
    return value
