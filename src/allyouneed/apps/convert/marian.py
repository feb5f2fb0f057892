"""Convert a folder of Marian itself (marian-nmt), a .npz with its vocabularies, to a bundle.

Marian starts its targets with a zero vector and has no padding token. Both become a new token, `<pad>`, whose embedding
is zero and which no translation contains.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError
from ...text.backends import EOS, PAD, UNK
from ...text.sentencepiece import SentencePieceModel, make_tokenizer, order_pieces, with_specials
from ...text.vocabulary import Vocabulary
from .checkpoint_files import NPZArray, choose_file, read_npz, read_settings, read_settings_file, read_vocabulary
from .foreign_model import (
    OUR_ACTIVATIONS,
    PROJECTION,
    SOURCE,
    TARGET,
    Checkpoint,
    StoredWeights,
    WeightFormat,
    our_value,
    require_settings,
)

EXPECTED: dict[str, tuple[Any, ...]] = {  # settings that our model can express, with their allowed values
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": (2,),
    "transformer-no-projection": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "transformer-depth-scaling": (True, False),
    "layer-normalization": (False,),
    "right-left": (False,),
    "ulr": (False,),
    "lemma-dim-emb": (0,),
    "input-types": ((), []),
}
PAD_BIAS = -100.0  # gives a probability of 0 in float32, because Marian's own softmax has no such token
MAX_LENGTH = 512  # positions; Marian computes sines and cosines for any length
CONFIG = "special:model.yml"  # the name of the array that holds the settings of the model
OUTPUT_BIAS = "decoder_ff_logit_out_b"
OUTPUT_TABLE, TURNED_OUTPUT_TABLE = "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"
TABLE_NAMES = ("Wemb", "encoder_Wemb", "decoder_Wemb", OUTPUT_TABLE)
MARIAN_NPZ = WeightFormat(
    program="Marian",
    names={
        ".layers.": "_l", ".attention.": "_self_", ".self_attention.": "_self_", ".cross_attention.": "_context_",
        ".attention_residual.norm.": "_self_Wo_ln_", ".self_attention_residual.norm.": "_self_Wo_ln_",
        ".cross_attention_residual.norm.": "_context_Wo_ln_", ".feed_forward_residual.norm.": "_ffn_ffn_ln_",
        "gain": "scale", ".feed_forward.": "_ffn_", "inner.weight": "W1", "inner.bias": "b1", "outer.weight": "W2",
        "outer.bias": "b2", SOURCE: "encoder_Wemb", TARGET: "decoder_Wemb", PROJECTION: OUTPUT_TABLE,
        "projection.bias": OUTPUT_BIAS,
    } | {
        f"{part}.{kind}": f"{kind_there}{part[0]}"
        for part in ("query", "key", "value", "output") for kind, kind_there in (("weight", "W"), ("bias", "b"))
    },
    first_layer=1,
    shared={"encoder_Wemb": "Wemb", "decoder_Wemb": "Wemb", OUTPUT_TABLE: TURNED_OUTPUT_TABLE},
)  # fmt: skip


def read_marian(folder: Path) -> Checkpoint:
    """Read a folder of Marian: the settings in the .npz, the weights and the vocabularies."""
    arrays = read_npz(choose_file(folder, "*.npz", "model.npz"))
    if CONFIG not in arrays:
        raise CheckpointError(f"the .npz of {folder} does not hold its settings, {CONFIG}, as Marian writes them")
    settings = read_settings(arrays.pop(CONFIG).tobytes().rstrip(b"\0"), CONFIG)
    require_settings(settings, EXPECTED)
    tensors = {key: _tensor(key, array) for key, array in arrays.items() if not key.startswith("special:")}
    config, vocabulary = _model_config(settings), _vocabulary(folder)
    if OUTPUT_BIAS not in tensors:  # trained with --output-omit-bias
        tensors[OUTPUT_BIAS] = _tensor(OUTPUT_BIAS, np.zeros(len(vocabulary.target) - 1))
    return Checkpoint(
        stored=StoredWeights(tensors, MARIAN_NPZ),
        config=config,
        vocabulary=vocabulary,
        decode=_decode_config(folder, config),
    )


def _model_config(settings: dict[str, Any]) -> ModelConfig:
    """Read the sizes of the model, except those of the vocabulary."""
    joint, target = settings.get("tied-embeddings-all"), settings.get("tied-embeddings")
    if settings.get("tied-embeddings-src") and not (joint or target):
        raise CheckpointError("the embeddings of both sides are shared, but not with the projection; this is not")
    activations = {marian: ours for marian, ours in OUR_ACTIVATIONS.items() if ours != "gelu"}  # Marian approximates it
    return ModelConfig(
        d_model=settings["dim-emb"],
        d_ff=settings["transformer-dim-ffn"],
        heads=settings["transformer-heads"],
        encoder_layers=settings["enc-depth"],
        decoder_layers=settings["dec-depth"],
        activation=our_value("activation", settings["transformer-ffn-activation"], activations),
        tied_embeddings="all" if joint or settings.get("tied-embeddings-src") else "target" if target else "none",
        projection_bias=True,
        max_length=MAX_LENGTH,
        dropout=float(settings.get("transformer-dropout", 0.1)),
        attention_dropout=float(settings.get("transformer-dropout-attention", 0.0)),
    )


def _tensor(key: str, array: NPZArray) -> Tensor:
    """Turn an array of Marian into a tensor with PyTorch's order of axes, and with a row for our `<pad>`."""
    array = array.astype("float32")
    if key == OUTPUT_BIAS:
        array = np.append(array, np.float32(PAD_BIAS))
    elif key in (*TABLE_NAMES, TURNED_OUTPUT_TABLE):
        table = array.T if key == TURNED_OUTPUT_TABLE else array
        array = np.concatenate((table, np.zeros((1, *table.shape[1:]), np.float32)))
    else:
        array = array.reshape(-1) if "_ln_" in key or "_b" in key else array.T
    return torch.from_numpy(np.ascontiguousarray(array))


def _vocabulary(folder: Path) -> Vocabulary:
    """Read two SentencePiece models: with the ids of a .vocab.yml, or those with which Marian was trained."""
    yml = sorted(folder.glob("*vocab.yml"))
    spm = sorted(folder.glob("*.spm"))
    if (folder / "source.spm").is_file() and yml:
        models = [SentencePieceModel.load(folder / f"{side}.spm") for side in ("source", "target")]
        files = yml * 2 if len(yml) == 1 else [choose_file(folder, f"*{end}.vocab.yml") for end in ("src", "trg")]
        pieces = [order_pieces(read_vocabulary(file)) for file in files]
    elif spm and not yml:
        if len(spm) > 2:
            raise CheckpointError(f"{folder} has {len(spm)} SentencePiece models; expected one, or one for each side")
        models = [SentencePieceModel.load(path) for path in (spm[0], spm[-1])]
        pieces = [list(model.names) for model in models]
    else:
        raise CheckpointError(
            f"{folder} has no vocabulary; expected source.spm, target.spm and a *.vocab.yml, or *.spm"
        )
    source, target = (_with_padding(side, folder) for side in pieces)
    return Vocabulary(make_tokenizer(models[0], source, start=None), make_tokenizer(models[1], target, start=PAD))


def _with_padding(pieces: list[str], folder: Path) -> list[str]:
    if "</s>" not in pieces or UNK not in pieces or PAD in pieces:
        raise CheckpointError(f"a vocabulary of {folder} must have </s> and {UNK}, and no {PAD}")
    return with_specials([*pieces, PAD], {pieces.index("</s>"): EOS})


def _decode_config(folder: Path, config: ModelConfig) -> DecodeConfig:
    """Read the search that decoder.yml describes. Without that file, use Marian's defaults."""
    path = folder / "decoder.yml"
    table = read_settings_file(path) if path.is_file() else {}
    if table.get("word-penalty"):
        raise CheckpointError("decoder.yml has a word-penalty, which has no equal here; remove it there")
    return DecodeConfig(
        beam=int(table.get("beam-size", 12)),
        alpha=float(table.get("normalize", 0.0)),
        length_penalty="plain",
        length_ratio=float(table.get("max-length-factor", 3.0)),
        max_length=config.max_length - 1,
        ban_unknown=not table.get("allow-unk", False),
        renormalize_logits=False,
    )
