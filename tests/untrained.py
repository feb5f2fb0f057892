"""Texts and untrained models for tests of translating."""

from dataclasses import replace
from typing import Any

import torch

from allyouneed.bundle import Bundle
from allyouneed.config import SPANS, DecodeConfig, ModelConfig
from allyouneed.nn import Transformer
from allyouneed.text.spans import CopyCount, CopyStatistics
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator

TEXTS = ["abc", "", "j", "ijabcdefg", "ab", "abcdefghij", ""]


def loud(bundle: Bundle, letter: str, *, logit: float = 12.0) -> None:
    """Make a model say only one letter, whatever it reads; other tokens have a logit of 0."""
    model = bundle.model
    with torch.no_grad():
        model.target_embedding.table.zero_()
        model.target_embedding.table[bundle.source_tokenizer.encode(letter)[1]] = logit / model.config.d_model
        last = model.get_submodule(f"decoder.layers.{model.config.decoder_layers - 1}.feed_forward_residual.norm")
        last.get_parameter("gain").zero_()
        last.get_parameter("bias").fill_(1.0)


def without_copies(bundle: Bundle) -> Bundle:
    """Return the same, as if its training pairs had never copied a placeholder, an address or an emoji."""
    return replace(bundle, copy_statistics=CopyStatistics(inside={kind: CopyCount(seen=100) for kind in SPANS}))


def spaced(**decode: Any) -> Translator:
    """Make an untrained translator with a vocabulary of ten letters and the blank."""
    tokenizer = Tokenizer.characters("abcdefghij ")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=8, d_ff=8, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=25, dropout=0.0,
    )  # fmt: skip
    return Translator(Bundle(Transformer(config).eval(), tokenizer, tokenizer, DecodeConfig(beam=2, **decode)))
