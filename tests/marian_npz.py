"""Folders as Marian itself leaves them, with the weights of a `MarianMTModel`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

SETTINGS = """\
type: transformer
dim-emb: {d_model}
dim-vocabs:
  - {vocabulary}
  - {vocabulary}
enc-depth: {encoder_layers}
dec-depth: {decoder_layers}
transformer-heads: {heads}
transformer-dim-ffn: {d_ff}
transformer-ffn-activation: {activation}
transformer-ffn-depth: 2
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-decoder-autoreg: self-attention
transformer-no-projection: false
transformer-guided-alignment-layer: last
transformer-train-position-embeddings: false
tied-embeddings-all: true
tied-embeddings-src: false
tied-embeddings: false
layer-normalization: false
right-left: false
"""


def npz_arrays(model: Any, settings: str = SETTINGS) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a `MarianMTModel` with tied embeddings, without its padding token."""
    config, state = model.config, model.state_dict()
    text = settings.format(
        d_model=config.d_model, vocabulary=config.vocab_size - 1, encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers, heads=config.encoder_attention_heads, d_ff=config.encoder_ffn_dim,
        activation=config.activation_function,
    )  # fmt: skip
    arrays = {
        "special:model.yml": np.frombuffer(text.encode() + b"\0", np.int8),
        "Wemb": state["model.shared.weight"][:-1].numpy(),
        "decoder_ff_logit_out_b": state["final_logits_bias"][:, :-1].numpy(),
    }
    for name, tensor in state.items():
        parts = name.split(".")
        if "layers" in parts:
            layer = f"{parts[1]}_l{int(parts[3]) + 1}"
            arrays[f"{layer}_{_marian_name('.'.join(parts[4:]))}"] = _marian_array(tensor)
    return arrays


def _marian_name(name: str) -> str:
    block, _, kind = name.rpartition(".")
    letter = {"weight": "W", "bias": "b"}[kind]
    if block in ("fc1", "fc2"):
        return f"ffn_{letter}{block[-1]}"
    if block == "final_layer_norm":
        return f"ffn_ffn_ln_{ {'weight': 'scale', 'bias': 'bias'}[kind] }"
    attention, _, part = block.partition("_attn")
    scope = {"self": "self", "encoder": "context"}[attention]
    if part == "_layer_norm":
        return f"{scope}_Wo_ln_{ {'weight': 'scale', 'bias': 'bias'}[kind] }"
    return f"{scope}_{letter}{part[1]}"


def _marian_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return tensor.T.contiguous().numpy() if tensor.dim() == 2 else tensor[None].numpy()


def write_npz_folder(folder: Path, checkpoint: Path, model: Any) -> None:
    """Write the SentencePiece models of a Hugging Face checkpoint, its weights and its vocabulary as Marian's files."""
    folder.mkdir()
    np.savez(folder / "model.npz", **npz_arrays(model))  # type: ignore[arg-type]
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes((checkpoint / f"{side}.spm").read_bytes())
    ids = json.loads((checkpoint / "vocab.json").read_text())
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {i}" for piece, i in ids.items() if piece != "<pad>"]
    (folder / "opus.vocab.yml").write_text("\n".join(lines) + "\n")
    (folder / "decoder.yml").write_text("beam-size: 6\nnormalize: 1\nmax-length-factor: 2.5\n")
