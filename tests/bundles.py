"""Small bundles with random weights."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.younger import build_model
from twins import scatter


def make_bundle(**sizes: Any) -> Bundle:
    """Make a bundle of ten letters, every weight of which is off its first value."""
    tokenizer = Tokenizer.characters("abcdefghij")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=16, d_ff=24, heads=2,
        encoder_layers=2, decoder_layers=3, max_length=40,
    )  # fmt: skip
    model = build_model(replace(config, **sizes)).eval()
    scatter(model)
    return Bundle(model, tokenizer, tokenizer, DecodeConfig())


def strip_checksums(folder: Path) -> None:
    """Make a bundle one without SHA256SUMS, as before there was one: a changed file is not noticed as such."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del config["checksums"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "SHA256SUMS").unlink()
