"""A folder of Marian's own (marian-nmt), a .npz with its vocabularies → a bundle.

Marian starts its targets with a zero vector and has no padding token. Both become one more token, `<pad>`, whose row of
the embeddings is zero and which no translation contains.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...bundle import Bundle
from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError
from ...text.backends import EOS, PAD, UNK
from ...text.normalize import Normalization
from ...text.sentencepiece import SentencePieceModel, make_tokenizer, order_pieces, with_specials
from ...text.vocabulary import Vocabulary
from .checkpoint_files import read_limited
from .foreign_weights import require_settings
from .huggingface import LOGITS_BIAS, MARIAN_ACTIVATIONS
from .marian_files import CONFIG, LARGEST_SETTINGS, NPZArray, read_npz, read_settings, read_vocabulary
from .marian_weights import make_model

EXPECTED: dict[str, tuple[Any, ...]] = {  # settings of a model that ours can express, and their allowed values
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
PAD_BIAS = -100.0  # a probability of 0 in float32: Marian's own softmax has no such token
MAX_LENGTH = 512  # positions; Marian computes its sines and cosines for any length
LAYER = {  # Marian's name in a layer: that of `MarianMTModel`
    f"{marian}_{kind}{part}": f"{block}.{projection}.{'weight' if kind == 'W' else 'bias'}"
    for marian, block in (("self", "self_attn"), ("context", "encoder_attn"))
    for part, projection in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("o", "out_proj"))
    for kind in "Wb"
} | {
    "self_Wo_ln_scale": "self_attn_layer_norm.weight",
    "self_Wo_ln_bias": "self_attn_layer_norm.bias",
    "context_Wo_ln_scale": "encoder_attn_layer_norm.weight",
    "context_Wo_ln_bias": "encoder_attn_layer_norm.bias",
    "ffn_W1": "fc1.weight",
    "ffn_b1": "fc1.bias",
    "ffn_W2": "fc2.weight",
    "ffn_b2": "fc2.bias",
    "ffn_ffn_ln_scale": "final_layer_norm.weight",
    "ffn_ffn_ln_bias": "final_layer_norm.bias",
}
TABLE_NAMES = {
    "Wemb": "model.shared.weight",
    "encoder_Wemb": "model.encoder.embed_tokens.weight",
    "decoder_Wemb": "model.decoder.embed_tokens.weight",
    "decoder_ff_logit_out_Wt": "lm_head.weight",
}
OUTPUT_BIAS = "decoder_ff_logit_out_b"


class MarianImporter:
    """An `Importer` for folders of Marian."""

    program = "Marian"
    looks_like = "one .npz, and source.spm and target.spm with a *.vocab.yml, or one or two *.spm alone"

    def recognizes(self, folder: Path) -> bool:
        """Whether there is a .npz."""
        return any(folder.glob("*.npz"))

    def read(self, folder: Path) -> Bundle:
        """The folder as a bundle."""
        arrays = read_npz(_only(folder, "*.npz", "model.npz"))
        if CONFIG not in arrays:
            raise CheckpointError(f"the .npz of {folder} does not hold its settings, {CONFIG}, as Marian writes them")
        settings = read_settings(arrays.pop(CONFIG).tobytes().rstrip(b"\0"), CONFIG)
        require_settings(settings, EXPECTED)
        vocabulary = _vocabulary(folder)
        stored = {name: tensor for key, array in arrays.items() for name, tensor in _rename(key, array)}
        if LOGITS_BIAS not in stored:  # trained with --output-omit-bias
            stored |= _rename(OUTPUT_BIAS, np.zeros(len(vocabulary.target) - 1))
        try:
            config = vocabulary.with_vocab_size(_model_config(settings))
            decode = _decode_config(folder, config)
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{folder} describes no model that a bundle can hold: {error!r:.200}") from error
        return Bundle(
            make_model(config, stored),
            vocabulary.source,
            vocabulary.target,
            decode,
            normalization=Normalization(unicode="none", strip_control=False),
        )


def _model_config(settings: dict[str, Any]) -> ModelConfig:
    """The sizes of the model, but those of its vocabulary."""
    activation = settings["transformer-ffn-activation"]
    activations = {marian: ours for ours, marian in MARIAN_ACTIVATIONS.items() if ours != "gelu"}  # it approximates
    if activation not in activations:
        raise CheckpointError(f"the activation must be {' or '.join(activations)}; got {activation!r:.40}")
    joint, target = settings.get("tied-embeddings-all"), settings.get("tied-embeddings")
    if settings.get("tied-embeddings-src") and not (joint or target):
        raise CheckpointError("the embeddings of both sides are shared, but not with the projection; this is not")
    return ModelConfig(
        d_model=settings["dim-emb"],
        d_ff=settings["transformer-dim-ffn"],
        heads=settings["transformer-heads"],
        encoder_layers=settings["enc-depth"],
        decoder_layers=settings["dec-depth"],
        activation=activations[activation],  # type: ignore[arg-type]
        tied_embeddings="all" if joint or settings.get("tied-embeddings-src") else "target" if target else "none",
        projection_bias=True,
        max_length=MAX_LENGTH,
        dropout=float(settings.get("transformer-dropout", 0.1)),
        attention_dropout=float(settings.get("transformer-dropout-attention", 0.0)),
    )


def _rename(key: str, array: NPZArray) -> list[tuple[str, Tensor]]:
    """An array of Marian under the name that `MarianMTModel` gives it, its axes in the order that PyTorch has."""
    tensor = torch.from_numpy(array.astype("float32"))
    if key in TABLE_NAMES:
        return [(TABLE_NAMES[key], torch.cat((tensor, tensor.new_zeros(1, *tensor.shape[1:]))))]
    if key == "decoder_ff_logit_out_W":
        return [("lm_head.weight", torch.cat((tensor.T, tensor.new_zeros(1, len(tensor)))))]
    if key == OUTPUT_BIAS:
        return [(LOGITS_BIAS, torch.cat((tensor.reshape(1, -1), tensor.new_full((1, 1), PAD_BIAS)), 1))]
    if key.startswith("special:"):
        return []
    side, layer, rest = [*key.split("_", 2), "", ""][:3]
    if side not in ("encoder", "decoder") or not layer[1:].isdecimal() or rest not in LAYER:
        raise CheckpointError(f"the weights have {key!r:.80}, which no Transformer of Marian that we can express has")
    name = f"model.{side}.layers.{int(layer[1:]) - 1}.{LAYER[rest]}"
    is_matrix = "_ln_" not in rest and name.endswith(".weight")
    return [(name, tensor.T.contiguous() if is_matrix else tensor.reshape(-1))]


def _vocabulary(folder: Path) -> Vocabulary:
    """Two SentencePiece models with the ids of a .vocab.yml, or the models with which Marian was trained itself."""
    yml = sorted(folder.glob("*vocab.yml"))
    spm = sorted(folder.glob("*.spm"))
    if (folder / "source.spm").is_file() and yml:
        models = [SentencePieceModel.load(folder / f"{side}.spm") for side in ("source", "target")]
        files = yml * 2 if len(yml) == 1 else [_only(folder, f"*{end}.vocab.yml") for end in ("src", "trg")]
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
    """The search that decoder.yml describes; Marian's defaults without it."""
    path = folder / "decoder.yml"
    table = read_settings(read_limited(path, LARGEST_SETTINGS), str(path)) if path.is_file() else {}
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
        copy_untranslatable=False,
        retry_repetition=False,
    )


def _only(folder: Path, pattern: str, preferred: str = "") -> Path:
    if preferred and (folder / preferred).is_file():
        return folder / preferred
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        raise CheckpointError(f"{folder} must have one {pattern}; it has {len(paths)}. Remove the others from a copy")
    return paths[0]
