"""Convert a bundle to CTranslate2, an inference engine in C++ (OpenNMT; github.com/OpenNMT/CTranslate2).

CTranslate2's `TransformerSpec` is our model with three differences: queries, keys and values of self-attention are one
matrix, keys and values of cross-attention are one matrix, and every norm belongs to its sublayer. As in our model, all
norms, including query-key norm, have the same epsilon. The exported folder also has our `tokenizer.json`. CTranslate2
takes tokens without `<sos>` and `<eos>`, which it adds itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...bundle import Bundle
from ...nn import DecoderBlock, EncoderBlock, LayerNorm, MultiHeadAttention, Transformer
from ...text.backends import EOS, PAD, UNK
from ...younger.query_key_norm import QueryKeyNormAttention
from .exports import ExportPrecision, banned_ids
from .vocabularies import save_tokenizers

if TYPE_CHECKING:
    from torch import Tensor, nn

CT2_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # our names → CTranslate2's
BANNED_LOGIT = -6e4  # the projection's bias for tokens that no search may write; fits into float16


def write_ctranslate2(bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
    """Write `bundle` as a folder for `ctranslate2.Translator(folder)`, with our tokenizer."""
    spec = _spec(bundle)
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))
    save_tokenizers(bundle, folder)


class CTranslate2Folder:
    """An exported folder in CTranslate2; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        import ctranslate2

        # Also for rounded weights: some processors lack float16, and without VNNI int8 sums overflow in CTranslate2.
        self._translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32")
        self._source, self._target = bundle.source_tokenizer, bundle.target_tokenizer
        self._source_names, self._names = self._source.names(), self._target.names()
        self._ids = {name: i for i, name in enumerate(self._names)}

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        (result,) = self._translator.translate_batch(
            [self._source_tokens(source)],
            beam_size=beam,
            length_penalty=0,
            max_decoding_length=max_length,
            min_decoding_length=0,
        )
        return [self._ids[token] for token in result.hypotheses[0]]

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        # CTranslate2 adds the end token to every target, so it is removed again from targets that were cut off.
        ended = target if target[-1] == self._target.eos_id else [*target, self._target.eos_id]
        tokens = [self._names[i] for i in self._target.content(ended)]
        (result,) = self._translator.score_batch([self._source_tokens(source)], [tokens])
        return list(result.log_probs)[: len(target) - 1]

    def _source_tokens(self, source: list[int]) -> list[str]:
        return [self._source_names[i] for i in self._source.content(source)]


def _spec(bundle: Bundle) -> Any:
    """Make the bundle's `TransformerSpec` for CTranslate2, in float32."""
    from ctranslate2 import specs

    config = bundle.model.config
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    common = {
        "num_heads": config.heads,
        "pre_norm": config.norm == "pre",
        "activation": specs.Activation[CT2_ACTIVATIONS[config.activation]],
        "qk_norm": config.query_key_norm,
        "rotary_dim": config.d_model // config.heads // 2 * 2 if config.is_rotary else None,
        "rotary_interleave": False,
    }
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, **common),
        specs.TransformerDecoderSpec(config.decoder_layers, **common),
    )
    if config.query_key_norm:  # only in self-attention, as in our model
        for layer in spec.decoder.layer:
            del layer.attention.q_norm, layer.attention.k_norm
    with torch.no_grad():
        _transformer(spec, bundle.model, banned=banned_ids(bundle))
    spec.register_source_vocabulary(source.names())
    spec.register_target_vocabulary(target.names())
    spec.config.decoder_start_token = spec.config.bos_token = target.names()[target.sos_id]
    spec.config.eos_token = EOS
    spec.config.unk_token = PAD if None in (source.unk_id, target.unk_id) else UNK  # CTranslate2 requires a name
    spec.config.add_source_bos, spec.config.add_source_eos = source.start_length > 0, True
    spec.config.layer_norm_epsilon = next(part.eps for part in bundle.model.modules() if isinstance(part, LayerNorm))
    spec.validate()
    return spec


# Arranged like the model, from the whole to its parts. Each function fills a part of the empty `spec`.


def _transformer(spec: Any, model: Transformer, banned: tuple[int, ...]) -> None:
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.table)
    if not model.config.is_rotary:
        spec.encoder.position_encodings.encodings = _array(model.source_position.encoding)
        spec.decoder.position_encodings.encodings = _array(model.target_position.encoding)
    for layer_spec, block in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _self_attention(layer_spec.self_attention, block.attention, block.attention_residual.norm)
        _feed_forward(layer_spec.ffn, block)
    spec.decoder.embeddings.weight = _array(model.target_embedding.table)
    for layer_spec, decoder_block in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        attention, cross = decoder_block.self_attention, decoder_block.cross_attention
        _self_attention(layer_spec.self_attention, attention, decoder_block.self_attention_residual.norm)
        _linear(layer_spec.attention.linear[0], cross.query)
        _linear(layer_spec.attention.linear[1], cross.key, cross.value)
        _linear(layer_spec.attention.linear[2], cross.output)
        _norm(layer_spec.attention.layer_norm, decoder_block.cross_attention_residual.norm)
        _feed_forward(layer_spec.ffn, decoder_block)
    if model.config.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder.norm)
        _norm(spec.decoder.layer_norm, model.decoder.norm)
    spec.decoder.projection.weight = _array(model.projection.table)
    bias = model.projection.bias
    spec.decoder.projection.bias = (
        np.zeros(model.config.effective_target_vocab_size, dtype=np.float32) if bias is None else _array(bias)
    )
    spec.decoder.projection.bias[list(banned)] = BANNED_LOGIT


def _self_attention(spec: Any, attention: MultiHeadAttention, norm: nn.Module) -> None:
    _linear(spec.linear[0], attention.query, attention.key, attention.value)
    _linear(spec.linear[1], attention.output)
    _norm(spec.layer_norm, norm)
    if isinstance(attention, QueryKeyNormAttention):
        spec.q_norm.gamma, spec.k_norm.gamma = _array(attention.query_gain), _array(attention.key_gain)


def _feed_forward(spec: Any, block: EncoderBlock | DecoderBlock) -> None:
    _linear(spec.linear_0, block.feed_forward.inner)
    _linear(spec.linear_1, block.feed_forward.outer)
    _norm(spec.layer_norm, block.feed_forward_residual.norm)


def _linear(spec: Any, *maps: nn.Linear) -> None:
    spec.weight = np.concatenate([_array(part.weight) for part in maps])
    spec.bias = np.concatenate([_array(part.bias) for part in maps])


def _norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, LayerNorm)
    spec.gamma, spec.beta = _array(norm.gain), _array(norm.bias)


def _array(tensor: Tensor | nn.Module) -> np.ndarray[Any, np.dtype[np.float32]]:
    assert isinstance(tensor, torch.Tensor)
    return tensor.detach().cpu().float().numpy().copy()  # CTranslate2 quantizes in place
