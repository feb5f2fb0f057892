"""Translate with an ONNX export, greedily, without PyTorch: `python examples/onnx_greedy.py mine-onnx "a sentence"`.

The folder is made by `allyouneed export runs/mine mine-onnx --to onnx`. Its tokenizer normalizes the text as well.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


def translate(folder: Path, text: str) -> str:
    """Translate a text greedily."""
    source = Tokenizer.from_file(str(folder / "tokenizer.json"))
    own_target = folder / "tokenizer.target.json"  # a model with a vocabulary for each side
    target = Tokenizer.from_file(str(own_target)) if own_target.exists() else source
    encoder = onnxruntime.InferenceSession(str(folder / "encoder.onnx"))
    decoder = onnxruntime.InferenceSession(str(folder / "decoder.onnx"))

    try:
        source_ids = source.encode(text).ids
    except Exception:  # the library has no other class; raised for a vocabulary of characters, without <unk> and bytes
        unknown = sorted(set(text) - set(source.get_vocab()))
        sys.exit(f"{text!r}: not in the vocabulary: {' '.join(unknown)}")
    unknown_id = source.token_to_id("<unk>") or max(source_ids)
    inputs = {"source": np.minimum([source_ids], unknown_id)}  # ids after <unk> are symbols of merges, not of the model
    memory_keys, memory_values, memory_mask = encoder.run(None, inputs)
    keys, values = memory_keys[:, :, :, :0], memory_values[:, :, :, :0]  # the KV cache, empty at first
    memory = {"memory_keys": memory_keys, "memory_values": memory_values, "memory_mask": memory_mask}
    last, end = target.token_to_id("<sos>"), target.token_to_id("<eos>")
    max_length = int(decoder.get_modelmeta().custom_metadata_map["max_length"])
    ids: list[int] = []
    while len(ids) < max_length:
        inputs = {"last": np.array([last]), "keys": keys, "values": values, **memory}
        log_probabilities, keys, values = decoder.run(None, inputs)
        last = int(log_probabilities[0].argmax())
        if last == end:
            break
        ids.append(last)
    return str(target.decode(ids))


if __name__ == "__main__":
    for text in sys.argv[2:]:
        print(text, " → ", translate(Path(sys.argv[1]), text))
