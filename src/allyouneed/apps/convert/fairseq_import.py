"""A folder with a checkpoint of fairseq's `transformer` → a bundle.

fairseq puts `</s>` behind a source and nothing before it, and begins a target with `</s>`. Its sines and cosines have
other frequencies than the paper's and begin at position pad + 1, so they become learned positions.
"""

import argparse
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...bundle import Bundle
from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError
from ...text.backends import EOS, PAD, SOS, UNK
from ...text.normalize import Normalization
from ...text.vocabulary import Vocabulary
from .checkpoint_files import read_pickle_safely, require_tensors
from .foreign_weights import StoredWeights, build_imported_model, require_settings
from .huggingface import weight_names
from .subword_vocabulary import ImportedSide, merges_side, read_lines_of_text, rename_specials, sentencepiece_side

_SPECIAL_TOKENS = {"<s>": SOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}  # the first ids of every dictionary
_PADDING = 1
_ACTIVATIONS: dict[str, Literal["relu", "gelu", "silu"]] = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
_EXPECTED: dict[str, tuple[object, ...]] = {  # settings that change what the weights compute
    "no_token_positional_embeddings": (False,),
    "no_cross_attention": (False,),
    "cross_self_attention": (False,),
    "layernorm_embedding": (False,),
    "adaptive_softmax_cutoff": (None,),
    "adaptive_input": (False,),
    "char_inputs": (False,),
    "no_decoder_final_norm": (False,),
    "encoder_layers_to_keep": (None,),
    "decoder_layers_to_keep": (None,),
    "base_layers": (0, None),
    "scale_attn": (False,),
    "scale_heads": (False,),
    "scale_fc": (False,),
    "scale_resids": (False,),
}
_IGNORED = {
    f"{side}.{name}" for side in ("encoder", "decoder") for name in ("version", "embed_positions._float_tensor")
}
_TABLES = {
    "source_embedding.table": "encoder.embed_tokens.weight",
    "target_embedding.table": "decoder.embed_tokens.weight",
    "projection.table": "decoder.output_projection.weight",
}
_CODES = ("bpecodes", "code", "codes", "*.codes", "codes.*", "bpe.*.codes")
_PREFERRED = ("model.pt", "checkpoint_best.pt", "checkpoint_last.pt")


class FairseqImporter:
    """An `Importer` for folders of fairseq."""

    program = "fairseq"
    looks_like = "dict.SOURCE.txt, dict.TARGET.txt and a checkpoint *.pt"

    def recognizes(self, folder: Path) -> bool:
        """Whether there are a dictionary and a checkpoint."""
        return any(folder.glob("dict.*.txt")) and any(folder.glob("*.pt"))

    def read(self, folder: Path) -> Bundle:
        """The folder as a bundle."""
        path = _checkpoint(folder)
        state = read_pickle_safely(path)
        if not isinstance(state, Mapping) or "model" not in state:
            raise CheckpointError(f"{path} is no checkpoint of fairseq: it has no table named model")
        stored, settings = StoredWeights(require_tensors(state["model"], f"{path}, model,")), _settings(state)
        require_settings(settings, _EXPECTED)
        languages = _languages(settings)
        sides = [_side(folder, code, start) for code, start in zip(languages, (None, EOS), strict=True)]
        vocabulary = Vocabulary(sides[0].tokenizer, sides[1].tokenizer)
        try:
            config = vocabulary.with_vocab_size(_model_config(settings, stored, sides))
        except (ConfigError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} describes no model that a bundle can hold: {error}") from error
        weights = FairseqWeights(stored, config, sides, scaled=not settings.get("no_scale_embedding"))
        model = build_imported_model(config, weights.weight)
        for name in _TABLES.values():
            if name in stored:
                weights.table(name)
        stored.require_all_used(_IGNORED, self.program)
        source, target = (code if re.fullmatch("[a-z]{2,3}", code) else "" for code in languages)
        return Bundle(
            model,
            vocabulary.source,
            vocabulary.target,
            DecodeConfig(
                beam=5, alpha=1.0, length_penalty="plain", length_ratio=0.0, extra_length=201, min_length=2,
                ban_unknown=False, renormalize_logits=False, copy_untranslatable=False, retry_repetition=False,
            ),
            normalization=Normalization(unicode="none", strip_control=False),
            languages=(source, target),
        )  # fmt: skip


class FairseqWeights:
    """The tensors of a checkpoint under our names."""

    def __init__(self, stored: StoredWeights, config: ModelConfig, sides: list[ImportedSide], *, scaled: bool) -> None:
        self.stored, self.config, self.scaled = stored, config, scaled
        self.rows = {_TABLES["source_embedding.table"]: sides[0].rows}
        self.names = {ours: foreign.removeprefix("model.") for ours, (foreign, _) in weight_names(config).items()}
        for side in ("encoder", "decoder"):
            self.names |= {
                f"{side}.norm.gain": f"{side}.layer_norm.weight",
                f"{side}.norm.bias": f"{side}.layer_norm.bias",
            }
        self.target_rows = sides[1].rows

    def weight(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """One by our name."""
        if name in _TABLES:
            table = self.table(_TABLES[name])
            if name == "projection.table" or self.scaled:
                return table
            return table / math.sqrt(self.config.d_model)
        if name.endswith("_position.encoding"):
            side = {"source": "encoder", "target": "decoder"}[name.partition("_")[0]]
            return self.positions(f"{side}.embed_positions.weight")
        return self.stored.read(self.names[name], shape)

    def table(self, name: str) -> Tensor:
        """An embedding or the projection, its rows in the order of our ids."""
        rows = self.rows.get(name, self.target_rows)
        if name not in self.stored and name == _TABLES["projection.table"]:  # older versions store a shared one once
            name = _TABLES["target_embedding.table"]
        return self.stored.read(name, (len(rows), self.config.d_model))[rows]

    def positions(self, name: str) -> Tensor:
        """The vectors of all positions: learned ones, or fairseq's sines and cosines."""
        first, length, width = _PADDING + 1, self.config.max_length, self.config.d_model
        if name in self.stored:
            count, _ = self.stored.sizes(name, 2)
            return self.stored.read(name, (count, width))[first : first + length]
        return fairseq_sinusoids(first + length, width)[first:]


def fairseq_sinusoids(length: int, width: int) -> Tensor:
    """All sines, then all cosines; frequencies from 1 to 1/10000 inclusive, computed in float32."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10_000) / max(1, half - 1)))
    angles = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    return F.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, width - 2 * half))


def _settings(state: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the model and the languages of its task, from `args` of older versions or `cfg` of newer ones."""
    cfg = state.get("cfg")
    parts = [cfg.get("task"), cfg.get("model")] if isinstance(cfg, Mapping) else [state.get("args")]
    settings: dict[str, Any] = {}
    for part in parts:
        settings |= _flat(vars(part) if isinstance(part, argparse.Namespace) else part)
    if not settings:
        raise CheckpointError("the checkpoint has no settings: neither args nor cfg is a table; see docs/import.md")
    name = settings.get("arch") or settings.get("_name") or "transformer"
    if not re.fullmatch(r"transformer(_(iwslt|wmt|vaswani|tiny|base|align)\w*)?", str(name)):
        raise CheckpointError(f"the model is {name!r:.60}; only fairseq's transformer can be imported")
    return settings


def _flat(part: Any, prefix: str = "") -> dict[str, Any]:
    """`{"encoder": {"layers": 6}}` as `{"encoder_layers": 6}`."""
    if not isinstance(part, Mapping):
        return {}
    flat: dict[str, Any] = {}
    for name, value in part.items():
        if prefix == "" and name in ("encoder", "decoder") and isinstance(value, Mapping):
            flat |= _flat(value, f"{name}_")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _model_config(settings: dict[str, Any], stored: StoredWeights, sides: list[ImportedSide]) -> ModelConfig:
    """The sizes of the weights, and what only the settings say; those of the vocabulary are left out."""
    for name in ("attention_heads", "normalize_before", "learned_pos"):
        one, other = (settings.get(f"{side}_{name}") for side in ("encoder", "decoder"))
        if one != other:
            raise CheckpointError(f"encoder and decoder must have the same {name}; got {one!r:.20} and {other!r:.20}")
    for side, first in (("encoder", 2), ("decoder", 3)):
        version = stored.read(f"{side}.version", (1,)).item() if f"{side}.version" in stored else 1
        if settings.get("encoder_normalize_before") and version < first:
            raise CheckpointError(
                f"the {side} is of an early version of fairseq, whose pre-norm had no norm at its end"
            )
    activation = settings.get("activation_fn", "relu")
    if activation not in _ACTIVATIONS:
        raise CheckpointError(f"activation_fn must be one of {', '.join(_ACTIVATIONS)}; got {activation!r:.40}")
    _, d_model = stored.sizes(_TABLES["source_embedding.table"], 2)
    d_ff, _ = stored.sizes("encoder.layers.0.fc1.weight", 2)
    return ModelConfig(
        d_model=d_model,
        d_ff=d_ff,
        heads=settings.get("encoder_attention_heads", 8),
        encoder_layers=stored.layers("encoder"),
        decoder_layers=stored.layers("decoder"),
        activation=_ACTIVATIONS[activation],
        norm="pre" if settings.get("encoder_normalize_before") else "post",
        positions="learned",
        tied_embeddings=_tied(settings, stored, sides, d_model),
        max_length=min(settings.get(f"max_{side}_positions") or 1024 for side in ("source", "target")),
        dropout=float(settings.get("dropout", 0.1)),
        attention_dropout=float(settings.get("attention_dropout", 0.0)),
    )


def _tied(settings: dict[str, Any], stored: StoredWeights, sides: list[ImportedSide], d_model: int) -> Any:
    """Which tables are one; without the factor √d_model none can be, because the projection never has it."""
    if settings.get("no_scale_embedding"):
        return "none"
    shape = (len(sides[1].rows), d_model)
    source, target, projection = _TABLES.values()
    if settings.get("share_all_embeddings") and stored.are_equal((source, target, projection), shape):
        return "all"
    shared = settings.get("share_all_embeddings") or settings.get("share_decoder_input_output_embed")
    return "target" if shared and stored.are_equal((target, projection), shape) else "none"


def _checkpoint(folder: Path) -> Path:
    paths = sorted(folder.glob("*.pt"))
    named = [folder / name for name in _PREFERRED if folder / name in paths]
    if not named and len(paths) != 1:
        raise CheckpointError(f"{folder} has {len(paths)} checkpoints; name the one to import {_PREFERRED[0]}")
    return (named or paths)[0]


def _languages(settings: dict[str, Any]) -> tuple[str, str]:
    languages = (settings.get("source_lang"), settings.get("target_lang"))
    for code in languages:
        if not isinstance(code, str) or not re.fullmatch(r"\w[\w-]*", code):
            raise CheckpointError(
                f"the checkpoint must name its languages, as source_lang and target_lang; got {code!r:.40}"
            )
    return str(languages[0]), str(languages[1])


def _side(folder: Path, language: str, start: str | None) -> ImportedSide:
    path = folder / f"dict.{language}.txt"
    symbols = rename_specials(_read_dictionary(path), _SPECIAL_TOKENS, path)
    sentencepiece = _one(folder, ("*.model", "*.spm"), language)
    codes = _one(folder, _CODES, language)
    if bool(sentencepiece) == bool(codes):
        raise CheckpointError(
            f"{folder} must have either a SentencePiece model (*.model) or merges of BPE (bpecodes or *.codes) beside "
            f"the checkpoint; it has {'both' if codes else 'none'}"
        )
    if sentencepiece:
        return sentencepiece_side(sentencepiece, symbols, start=start, restricted=False)
    assert codes is not None
    return merges_side(codes, symbols, start=start)


def _read_dictionary(path: Path) -> list[str]:
    tokens = list(_SPECIAL_TOKENS)
    for number, line in enumerate(read_lines_of_text(path), start=1):
        token, _, count = line.rstrip().rpartition(" ")
        if not token or not re.fullmatch(r"-?\d+", count):
            raise CheckpointError(f"{path}, line {number}, must be a token and its count; got {line!r:.60}")
        tokens.append(token)
    return tokens


def _one(folder: Path, patterns: tuple[str, ...], language: str) -> Path | None:
    """The one file of these names, or of several the one that has the language in its name."""
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if len(paths) > 1:
        paths = [path for path in paths if language in path.name.split(".")]
        if len(paths) != 1:
            raise CheckpointError(
                f"{folder} must have one {patterns[0]}, or one for each side with its language as *.{language}.*"
            )
    return paths[0] if paths else None
