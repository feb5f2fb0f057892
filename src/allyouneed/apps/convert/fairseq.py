"""A folder with a checkpoint of fairseq's `transformer` → a bundle.

fairseq puts `</s>` behind a source and nothing before it, and begins a target with `</s>`. Its sines and cosines have
other frequencies than the paper's and begin at position pad + 1, so they become learned positions.
"""

import argparse
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError
from ...text.backends import EOS, PAD, SOS, UNK
from ...text.vocabulary import Vocabulary
from .checkpoint_files import choose_file, read_lines_of_text, read_state
from .foreign_model import (
    FAIRSEQ_NAMES,
    OUR_ACTIVATIONS,
    PROJECTION,
    SOURCE,
    TARGET,
    Checkpoint,
    StoredWeights,
    WeightFormat,
    our_value,
    require_equal,
    require_settings,
)
from .vocabularies import ImportedSide, merges_side, rename_specials, sentencepiece_side

_SPECIAL_TOKENS = {"<s>": SOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}  # the first ids of every dictionary
_PADDING = 1
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
_CODES = ("bpecodes", "code", "codes", "*.codes", "codes.*", "bpe.*.codes")


def _fairseq_sinusoids(length: int, width: int) -> Tensor:
    """All sines, then all cosines; frequencies from 1 to 1/10000 inclusive, computed in float32."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10_000) / max(1, half - 1)))
    angles = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    return F.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, width - 2 * half))


def _positions(stored: StoredWeights, config: ModelConfig, name: str) -> Tensor:
    """The vectors of all positions of a side: learned ones, or fairseq's sines and cosines."""
    first, length, width = _PADDING + 1, config.max_length, config.d_model
    table = f"{'encoder' if name.startswith('source') else 'decoder'}.embed_positions.weight"
    if table in stored:
        count, _ = stored.sizes(table, 2)
        return stored.read(table, (count, width))[first : first + length]
    return _fairseq_sinusoids(first + length, width)[first:]


FAIRSEQ = WeightFormat(
    program="fairseq",
    names=FAIRSEQ_NAMES,
    shared={FAIRSEQ_NAMES[PROJECTION]: FAIRSEQ_NAMES[TARGET]},  # older versions store a table that is shared once
    positions=_positions,
    ignored=[
        f"{side}.{name}" for side in ("encoder", "decoder") for name in ("version", "embed_positions._float_tensor")
    ],
)


def read_fairseq(folder: Path) -> Checkpoint:
    """The weights decide what the sizes are, and the settings what the weights do not show."""
    path = choose_file(folder, "*.pt", "model.pt", "checkpoint_best.pt", "checkpoint_last.pt")
    state, tensors = read_state(path, "model", FAIRSEQ.program)
    settings = _settings(state)
    require_settings(settings, _EXPECTED)
    languages = _languages(settings)
    source, target = (_side(folder, code, start) for code, start in zip(languages, (None, EOS), strict=True))
    stored = StoredWeights(
        tensors,
        FAIRSEQ,
        rows={SOURCE: source.rows, TARGET: target.rows, PROJECTION: target.rows},
        unscaled=(SOURCE, TARGET) if settings.get("no_scale_embedding") else (),
    )
    return Checkpoint(
        stored=stored,
        config=_model_config(settings, stored, len(target.rows)),
        vocabulary=Vocabulary(source.tokenizer, target.tokenizer),
        decode=DecodeConfig(
            beam=5, alpha=1.0, length_penalty="plain", length_ratio=0.0, extra_length=201, min_length=2,
            ban_unknown=False, renormalize_logits=False,
        ),
        languages=languages,
    )  # fmt: skip


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


def _model_config(settings: dict[str, Any], stored: StoredWeights, target_tokens: int) -> ModelConfig:
    """The sizes of the weights, and what only the settings say; those of the vocabulary are left out."""
    heads, pre_norm, _ = (
        require_equal(name, *(settings.get(f"{side}_{name}") for side in ("encoder", "decoder")))
        for name in ("attention_heads", "normalize_before", "learned_pos")
    )
    for side, first in (("encoder", 2), ("decoder", 3)):
        version = stored.read(f"{side}.version", (1,)).item() if f"{side}.version" in stored else 1
        if pre_norm and version < first:
            raise CheckpointError(
                f"the {side} is of an early version of fairseq, whose pre-norm had no norm at its end"
            )
    _, d_model = stored.sizes(FAIRSEQ_NAMES[SOURCE], 2)
    d_ff, _ = stored.sizes("encoder.layers.0.fc1.weight", 2)
    # Without the factor √d_model our tables differ, because the projection never has it.
    joint, target = (
        bool(settings.get(name)) and not settings.get("no_scale_embedding")
        for name in ("share_all_embeddings", "share_decoder_input_output_embed")
    )
    return ModelConfig(
        d_model=d_model,
        d_ff=d_ff,
        heads=8 if heads is None else heads,
        encoder_layers=stored.layers("encoder"),
        decoder_layers=stored.layers("decoder"),
        activation=our_value("activation_fn", settings.get("activation_fn", "relu"), OUR_ACTIVATIONS),
        norm="pre" if pre_norm else "post",
        positions="learned",
        tied_embeddings=stored.find_tied((target_tokens, d_model), joint=joint, target=joint or target),
        max_length=min(settings.get(f"max_{side}_positions") or 1024 for side in ("source", "target")),
        dropout=float(settings.get("dropout", 0.1)),
        attention_dropout=float(settings.get("attention_dropout", 0.0)),
    )


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
