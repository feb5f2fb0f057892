"""A `tokenizer.json` for programs that read it with the tokenizers library: it normalizes a text as the bundle does."""

import json
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...files import write_whole
from ...text.normalize import Normalization
from ...text.tokenizer import Tokenizer


def save_tokenizer(tokenizer: Tokenizer, normalization: Normalization, path: Path) -> None:
    """Write a tokenizer that normalizes before it splits.

    Ids after that of `<unk>`, which a vocabulary of given merges may write, stand for `<unk>` in the model.
    """
    table = json.loads(tokenizer.backend_json())
    table["normalizer"] = normalizer(normalization, table["normalizer"])
    write_whole(path, json.dumps(table, ensure_ascii=False))


def save_tokenizers(bundle: Bundle, folder: Path) -> None:
    """Write `tokenizer.json`, and `tokenizer.target.json` where the target has another vocabulary."""
    save_tokenizer(bundle.source_tokenizer, bundle.normalization, folder / "tokenizer.json")
    if bundle.target_tokenizer is not bundle.source_tokenizer:
        save_tokenizer(bundle.target_tokenizer, bundle.normalization, folder / "tokenizer.target.json")


def normalizer(normalization: Normalization, vocabulary: dict[str, Any] | None) -> dict[str, Any] | None:
    """The bundle's normalization as normalizers of the tokenizers library, before the vocabulary's."""
    parts: list[dict[str, Any]] = []
    if normalization.strip_control:
        parts += [
            {"type": "Replace", "pattern": {"Regex": r"[\t\n\v\f\r\x{85}\x{2028}\x{2029}]+"}, "content": " "},
            {"type": "Replace", "pattern": {"Regex": r"[\x00-\x08\x0e-\x1f\x7f-\x{84}\x{86}-\x{9f}]"}, "content": ""},
        ]
    if normalization.unicode != "none":
        parts.append({"type": normalization.unicode})
    parts += [vocabulary] if vocabulary else []
    return {"type": "Sequence", "normalizers": parts} if parts else None
