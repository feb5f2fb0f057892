"""A bundle → CTranslate2, an inference engine in C++ (OpenNMT; github.com/OpenNMT/CTranslate2).

Its `TransformerSpec` is our model but for three habits: queries, keys and values of self-attention
are one matrix, those of cross-attention two, and every norm belongs to the sublayer it stands at.
The converted folder holds our `tokenizer.json` too; `prove` lets CTranslate2 translate and holds
every word against ours.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..bundle import Bundle
from ..errors import ExportError, MissingExtraError
from ..inference.custom_parts import find_custom_part
from ..nn import DecoderBlock, EncoderBlock, FeedForward, LayerNorm, MultiHeadAttention, Transformer
from ..text.backends import EOS, PAD, SOS
from ..text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor, nn

CT2_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # ours → theirs
BANNED_LOGIT = -1e9  # the logit of what our searches never say, here as a bias of the projection


def convert(bundle: Bundle, folder: Path) -> None:
    """Write `bundle` as a CTranslate2 model, float32, for `ctranslate2.Translator(folder)`.

    It takes the tokens of `tokenizer.json` without `<sos>` and `<eos>`, which it adds itself. Its
    precision is chosen when it is loaded. Refuses head widths other than d_model / heads, a model with a
    part of its own (a subclass, a forward hook), and a folder that exists.
    """
    library = _library()
    config = bundle.model.config
    _refuse_what_it_cannot_express(bundle.model)
    if folder.exists():
        raise ExportError(f"{folder} exists already; a converted model needs a folder of its own")
    spec = library.specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=library.specs.Activation[CT2_ACTIVATIONS[config.activation]],
    )
    with torch.no_grad():
        _transformer(spec, bundle.model, never=banned_ids(bundle.source_tokenizer))
    names = bundle.source_tokenizer.names()
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = spec.config.decoder_start_token = SOS
    spec.config.eos_token = EOS
    unknown = bundle.source_tokenizer.unk_id
    spec.config.unk_token = PAD if unknown is None else names[unknown]  # theirs must be called something
    spec.config.add_source_bos = spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = bundle.model.encoder.layers[0].attention_residual.norm.eps  # type: ignore[union-attr]
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir(parents=True)
    try:
        spec.save(str(folder))
        bundle.source_tokenizer.save(folder / "tokenizer.json")
    except BaseException:
        shutil.rmtree(folder)
        raise


@dataclass(frozen=True, slots=True)
class Proof:
    """How a converted model did beside ours: `same` of `sentences` word for word, `words` in all.

    `apart` is the largest difference of a word's log-probability, in nats.
    """

    sentences: int
    identical: int
    tokens: int
    max_difference: float


def prove(bundle: Bundle, folder: Path, sources: list[list[int]], *, longest: int = 64) -> Proof:
    """Let CTranslate2 translate `sources` greedily in float32, and hold each word against our model's likeliest.

    A sentence is the same if after each of its beginnings our likeliest word is the one that
    CTranslate2 wrote. Sources are ids with `<sos>` and `<eos>`; translations are cut off at `longest` words.
    """
    library = _library()
    names = bundle.source_tokenizer.names()
    translator = library.Translator(str(folder), device="cpu", compute_type="float32")
    tokens = [[names[i] for i in source[1:-1]] for source in sources]
    longest = min(longest, bundle.model.config.max_length - 1)
    written = [
        [names.index(word) for word in result.hypotheses[0]]
        for result in translator.translate_batch(
            tokens, beam_size=1, max_decoding_length=longest, min_decoding_length=0
        )
    ]
    scored = translator.score_batch(tokens, [[names[i] for i in ids] for ids in written])
    never = banned_ids(bundle.source_tokenizer)
    same, words, apart = 0, 0, 0.0
    for source, ids, scores in zip(sources, written, scored, strict=True):
        log_probabilities = _log_probabilities(
            bundle.model, source, [bundle.source_tokenizer.sos_id, *ids], never
        )  # (T + 1, V)
        expected = torch.tensor([*ids, bundle.source_tokenizer.eos_id][:longest])
        same += torch.equal(log_probabilities.argmax(-1)[: len(expected)], expected)
        token_log_probabilities = log_probabilities.gather(
            1, torch.tensor([*ids, bundle.source_tokenizer.eos_id])[:, None]
        )[:, 0]
        apart = max(apart, float((token_log_probabilities - torch.tensor(scores.log_probs)).abs().max()))
        words += len(expected)
    return Proof(len(sources), same, words, apart)


def random_sources(bundle: Bundle, count: int, *, seed: int) -> list[list[int]]:
    """Sentences of 1 to 30 random words, as ids with `<sos>` and `<eos>`."""
    rng = random.Random(seed)
    excluded = {bundle.source_tokenizer.eos_id, *banned_ids(bundle.source_tokenizer)}
    words = [i for i in range(len(bundle.source_tokenizer)) if i not in excluded]
    longest = min(30, bundle.model.config.max_length - 2)
    return [
        [
            bundle.source_tokenizer.sos_id,
            *rng.choices(words, k=rng.randint(1, longest)),
            bundle.source_tokenizer.eos_id,
        ]
        for _ in range(count)
    ]


@torch.inference_mode()
def _log_probabilities(model: Transformer, source: list[int], target: list[int], never: tuple[int, ...]) -> Tensor:
    logits = model(torch.tensor([source]), torch.tensor([target]))[0]
    logits[:, never] = BANNED_LOGIT
    return logits.log_softmax(-1)  # type: ignore[no-any-return]


def banned_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    return tuple(i for i in (tokenizer.pad_id, tokenizer.sos_id, tokenizer.unk_id) if i is not None)


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError as error:
        raise MissingExtraError("CTranslate2", "ctranslate2") from error
    return ctranslate2


def _refuse_what_it_cannot_express(model: Transformer) -> None:
    config, custom = model.config, find_custom_part(model)
    if custom:
        raise ExportError(f"{custom}, which CTranslate2 cannot express; only models as their config makes them can go")
    width = config.d_model // config.heads
    if config.d_model % config.heads or (config.d_k or width, config.d_v or width) != (width, width):
        raise ExportError(
            f"CTranslate2 has heads of width d_model / heads alone; this model has d_model={config.d_model}, "
            f"heads={config.heads}, d_k={config.d_k}, d_v={config.d_v}"
        )
    if config.effective_target_vocab_size != config.vocab_size:
        raise ExportError(
            f"one tokenizer names the words of both sides of a converted model; this one has {config.vocab_size} "
            f"ids for the source and {config.effective_target_vocab_size} for the target"
        )


# Shaped like the model, from the whole to its parts. `spec` is theirs, empty; the part is ours.


def _transformer(spec: Any, model: Transformer, never: tuple[int, ...]) -> None:
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.table)
    spec.encoder.position_encodings.encodings = _array(model.source_position.encoding)
    for layer_spec, encoder_block in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _encoder_block(layer_spec, encoder_block)  # type: ignore[arg-type]
    spec.decoder.embeddings.weight = _array(model.target_embedding.table)
    spec.decoder.position_encodings.encodings = _array(model.target_position.encoding)
    for layer_spec, decoder_block in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _decoder_block(layer_spec, decoder_block)  # type: ignore[arg-type]
    if model.config.norm == "pre":
        _norm(spec.encoder.layer_norm, model.encoder.norm)  # type: ignore[arg-type]
        _norm(spec.decoder.layer_norm, model.decoder.norm)  # type: ignore[arg-type]
    spec.decoder.projection.weight = _array(model.projection.table)
    spec.decoder.projection.bias = np.zeros(model.config.effective_target_vocab_size, dtype=np.float32)
    spec.decoder.projection.bias[list(never)] = BANNED_LOGIT


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


def _cross_attention(spec: Any, attention: MultiHeadAttention) -> None:
    _linear(spec.linear[0], attention.query)
    _linear(spec.linear[1], attention.key, attention.value)
    _linear(spec.linear[2], attention.output)


def _feed_forward(spec: Any, feed_forward: FeedForward) -> None:
    _linear(spec.linear_0, feed_forward.inner)
    _linear(spec.linear_1, feed_forward.outer)


def _linear(spec: Any, *maps: nn.Linear) -> None:
    spec.weight = np.concatenate([_array(part.weight) for part in maps])
    spec.bias = np.concatenate([_array(part.bias) for part in maps])


def _norm(spec: Any, norm: LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.gain), _array(norm.bias)


def _array(tensor: Tensor | nn.Module) -> np.ndarray[Any, np.dtype[np.float32]]:
    assert isinstance(tensor, torch.Tensor)
    return tensor.detach().cpu().float().contiguous().numpy()
