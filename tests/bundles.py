"""Small bundles with random weights."""

from dataclasses import replace
from typing import Any

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from twins import scatter


def make_bundle(**sizes: Any) -> Bundle:
    """A bundle of ten letters, every weight of which is off its first value."""
    tokenizer = Tokenizer.characters("abcdefghij")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=16, d_ff=24, heads=2,
        encoder_layers=2, decoder_layers=3, max_length=40,
    )  # fmt: skip
    model = Transformer(replace(config, **sizes)).eval()
    scatter(model)
    return Bundle(model, tokenizer, tokenizer, DecodeConfig())
