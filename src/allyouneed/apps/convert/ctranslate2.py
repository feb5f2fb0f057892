"""A bundle → CTranslate2, an inference engine in C++ (OpenNMT; github.com/OpenNMT/CTranslate2).

Its `TransformerSpec` is our model with three differences: queries, keys and values of self-attention are one matrix,
keys and values of cross-attention are one, and every norm belongs to its sublayer. Its epsilon is one number for every
norm, query-key norm too, as it is here. The exported folder holds our `tokenizer.json` too; CTranslate2 takes its
tokens without `<sos>` and `<eos>`, which it adds itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...bundle import Bundle
from ...config import ModelConfig
from ...errors import MissingExtraError
from ...nn import DecoderBlock, EncoderBlock, FeedForward, LayerNorm, MultiHeadAttention, Transformer
from ...text.backends import EOS, PAD, UNK
from ...younger.query_key_norm import QueryKeyNormAttention
from .exported_tokenizer import save_tokenizers
from .precision import ExportPrecision
from .proof import ConvertedModel, banned_ids

if TYPE_CHECKING:
    from torch import Tensor, nn

CT2_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # ours: CTranslate2's
BANNED_LOGIT = -6e4  # the bias of the projection for tokens that no search writes; float16 can hold it


class CTranslate2Exporter:
    """An `Exporter` for CTranslate2."""

    program = "CTranslate2"
    precisions: tuple[ExportPrecision, ...] = ("float32", "float16", "int8")

    def default_precision(self, config: ModelConfig) -> ExportPrecision:
        """That of the bundle."""
        return "float32"

    def require_library(self) -> None:
        """Refuse to go on without the extra."""
        _library()

    def write(self, bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        """Write `bundle` for `ctranslate2.Translator(folder)`, with our tokenizer."""
        spec = _spec(bundle)
        spec.optimize(quantization=None if precision == "float32" else precision)
        spec.save(str(folder))
        save_tokenizers(bundle, folder)

    def load(self, folder: Path, bundle: Bundle, precision: ExportPrecision) -> ConvertedModel:
        """The folder at work in CTranslate2."""
        return CTranslate2Folder(folder, bundle)


class CTranslate2Folder:
    """An exported folder at work in CTranslate2; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        # Rounded weights, too: not every processor has float16, and int8 sums overflow in CTranslate2 without VNNI.
        self._translator = _library().Translator(str(folder), device="cpu", compute_type="float32")
        self._source_tokenizer, self._target_tokenizer = bundle.source_tokenizer, bundle.target_tokenizer
        self._source_names, self._names = bundle.source_tokenizer.names(), bundle.target_tokenizer.names()
        self._ids = {name: i for i, name in enumerate(self._names)}

    def translate(self, sources: list[list[int]], *, beam: int, max_length: int) -> list[list[int]]:
        """As in `ConvertedModel`."""
        results = self._translator.translate_batch(
            self._tokens(sources),
            beam_size=beam,
            length_penalty=0,
            max_decoding_length=max_length,
            min_decoding_length=0,
        )
        return [[self._ids[token] for token in result.hypotheses[0]] for result in results]

    def log_probabilities(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """As in `ConvertedModel`."""
        # CTranslate2 adds the end token to every target, so that of one that was cut off is left out again.
        ended = [target if target[-1] == self._ids[EOS] else [*target, self._ids[EOS]] for target in targets]
        tokens = [[self._names[i] for i in self._target_tokenizer.content(ids)] for ids in ended]
        results = self._translator.score_batch(self._tokens(sources), tokens)
        return [list(result.log_probs)[: len(target) - 1] for result, target in zip(results, targets, strict=True)]

    def _tokens(self, sentences: list[list[int]]) -> list[list[str]]:
        return [[self._source_names[i] for i in self._source_tokenizer.content(ids)] for ids in sentences]


def _spec(bundle: Bundle) -> Any:
    """The bundle as CTranslate2's `TransformerSpec`, float32."""
    library, config = _library(), bundle.model.config
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    common = {
        "num_heads": config.heads,
        "pre_norm": config.norm == "pre",
        "activation": library.specs.Activation[CT2_ACTIVATIONS[config.activation]],
        "qk_norm": config.query_key_norm,
        "rotary_dim": config.d_model // config.heads // 2 * 2 if config.positions == "rotary" else None,
        "rotary_interleave": False,
    }
    spec = library.specs.TransformerSpec(
        library.specs.TransformerEncoderSpec(config.encoder_layers, **common),
        library.specs.TransformerDecoderSpec(config.decoder_layers, **common),
    )
    if config.query_key_norm:  # of self-attention alone, as here
        for layer in spec.decoder.layer:
            del layer.attention.q_norm, layer.attention.k_norm
    with torch.no_grad():
        _transformer(spec, bundle.model, banned=banned_ids(bundle))
    spec.register_source_vocabulary(source.names())
    spec.register_target_vocabulary(target.names())
    spec.config.decoder_start_token = spec.config.bos_token = target.names()[target.sos_id]
    spec.config.eos_token = EOS
    spec.config.unk_token = PAD if None in (source.unk_id, target.unk_id) else UNK  # it must have a name
    spec.config.add_source_bos, spec.config.add_source_eos = source.start_length > 0, True
    spec.config.layer_norm_epsilon = next(part.eps for part in bundle.model.modules() if isinstance(part, LayerNorm))
    spec.validate()
    return spec


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError as error:
        raise MissingExtraError("CTranslate2", "export") from error
    return ctranslate2


# Shaped like the model, from the whole to its parts: each function fills a part of the empty `spec`.


def _transformer(spec: Any, model: Transformer, banned: tuple[int, ...]) -> None:
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.table)
    if model.config.positions != "rotary":
        spec.encoder.position_encodings.encodings = _array(model.source_position.encoding)
        spec.decoder.position_encodings.encodings = _array(model.target_position.encoding)
    for layer_spec, encoder_block in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _encoder_block(layer_spec, encoder_block)
    spec.decoder.embeddings.weight = _array(model.target_embedding.table)
    for layer_spec, decoder_block in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _decoder_block(layer_spec, decoder_block)
    if model.config.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder.norm)
        _norm(spec.decoder.layer_norm, model.decoder.norm)
    spec.decoder.projection.weight = _array(model.projection.table)
    bias = model.projection.bias
    spec.decoder.projection.bias = (
        np.zeros(model.config.effective_target_vocab_size, dtype=np.float32) if bias is None else _array(bias)
    )
    spec.decoder.projection.bias[list(banned)] = BANNED_LOGIT


def _encoder_block(spec: Any, block: EncoderBlock) -> None:
    _self_attention(spec.self_attention, block.attention)
    _norm(spec.self_attention.layer_norm, block.attention_residual.norm)
    _feed_forward(spec.ffn, block.feed_forward)
    _norm(spec.ffn.layer_norm, block.feed_forward_residual.norm)


def _decoder_block(spec: Any, block: DecoderBlock) -> None:
    _self_attention(spec.self_attention, block.self_attention)
    _norm(spec.self_attention.layer_norm, block.self_attention_residual.norm)
    _cross_attention(spec.attention, block.cross_attention)
    _norm(spec.attention.layer_norm, block.cross_attention_residual.norm)
    _feed_forward(spec.ffn, block.feed_forward)
    _norm(spec.ffn.layer_norm, block.feed_forward_residual.norm)


def _self_attention(spec: Any, attention: MultiHeadAttention) -> None:
    _linear(spec.linear[0], attention.query, attention.key, attention.value)
    _linear(spec.linear[1], attention.output)
    _query_key_norm(spec, attention)


def _cross_attention(spec: Any, attention: MultiHeadAttention) -> None:
    _linear(spec.linear[0], attention.query)
    _linear(spec.linear[1], attention.key, attention.value)
    _linear(spec.linear[2], attention.output)


def _query_key_norm(spec: Any, attention: MultiHeadAttention) -> None:
    if isinstance(attention, QueryKeyNormAttention):
        spec.q_norm.gamma, spec.k_norm.gamma = _array(attention.query_gain), _array(attention.key_gain)


def _feed_forward(spec: Any, feed_forward: FeedForward) -> None:
    _linear(spec.linear_0, feed_forward.inner)
    _linear(spec.linear_1, feed_forward.outer)


def _linear(spec: Any, *maps: nn.Linear) -> None:
    spec.weight = np.concatenate([_array(part.weight) for part in maps])
    spec.bias = np.concatenate([_array(part.bias) for part in maps])


def _norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, LayerNorm)
    spec.gamma, spec.beta = _array(norm.gain), _array(norm.bias)


def _array(tensor: Tensor | nn.Module) -> np.ndarray[Any, np.dtype[np.float32]]:
    assert isinstance(tensor, torch.Tensor)
    return tensor.detach().cpu().float().numpy().copy()  # CTranslate2 quantizes in the memory that it is handed
