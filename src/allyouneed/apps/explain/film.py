"""A frame of a run's film: the model's translation and attention for one text at a moment of training."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...bundle import Bundle
from ...decode import SearchLimits, greedy_search
from ...translator.definition import DefinitionEngine
from ...translator.likelihood import alignment_layer, eval_copy
from .recording import recorded_attention

MAX_TOKENS = 48  # in a translation and its drawing, because an untrained model never stops writing


@torch.inference_mode()
def film_frame(bundle: Bundle, text: str, target: str | None = None) -> dict[str, Any]:
    """Translate `text` greedily, and record the attention of one pass over `text` and `target`.

    By default, `target` is the translation. Two attentions are recorded, averaged over their heads: the cross-attention
    of the layer that aligns, and the decoder's first self-attention. Weights are stored as shares of 255, for at most
    48 tokens per side. The model may be in training mode, and stays in it. Refuses a text that the vocabulary cannot
    spell.
    """
    model, tokenizer = eval_copy(bundle.model), bundle.target_tokenizer
    source = bundle.source_tokenizer.encode(bundle.normalization(text))
    device = next(model.parameters()).device
    step = DefinitionEngine(model, "float32").start([source], banned_ids=tokenizer.banned_ids(unknown=True))
    longest = min(MAX_TOKENS, 2 * len(source), model.config.max_length)
    limits = SearchLimits(sos_id=tokenizer.sos_id, eos_id=tokenizer.eos_id, max_lengths=[longest])
    (result,) = greedy_search(step, limits)
    if target is None:
        read = [tokenizer.sos_id, *result.ids, tokenizer.eos_id][: model.config.max_length + 1]
    else:
        read = tokenizer.encode(bundle.normalization(target))
    with recorded_attention(model) as seen:
        model(torch.tensor([source], device=device), torch.tensor([read[:-1]], device=device))
    cross = f"decoder.layers.{alignment_layer(model.config.decoder_layers)}.cross_attention"
    return {
        "text": text,
        "output": tokenizer.decode(result.ids),
        "source": bundle.source_tokenizer.pieces(source)[:MAX_TOKENS],
        "inputs": tokenizer.pieces(read[:-1])[:MAX_TOKENS],
        "target": tokenizer.pieces(read[1:])[:MAX_TOKENS],
        "cross": _pack(seen[cross][0].mean(0)),
        "self": _pack(seen["decoder.layers.0.self_attention"][0].mean(0)),
    }


def changes(frames: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Keep only the values of each frame that differ from the previous frame. The page fills in the rest."""
    return [
        {key: value for key, value in frame.items() if before.get(key, ...) != value}
        for before, frame in zip([{}, *frames[:-1]], frames, strict=True)
    ]


def _pack(weights: Tensor) -> str:
    """Write rows of weights as bytes, with 255 for a weight of 1, in base64."""
    steps = (255 * weights[:MAX_TOKENS, :MAX_TOKENS].float().cpu()).round().to(torch.uint8)
    return b64encode(steps.numpy().tobytes()).decode("ascii")
