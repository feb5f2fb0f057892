"""Write our vocabularies as files that other programs read."""

import json
import re
import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...machine.files import to_json, write_whole
from ...text.backends import EOS
from ...text.normalize import UNSEEN, Normalization
from ...text.sentencepiece import CONTROL, NORMAL, UNIGRAM, UNKNOWN
from ...text.tokenizer import Tokenizer


def save_tokenizer(tokenizer: Tokenizer, normalization: Normalization, path: Path) -> None:
    """Write a tokenizer that normalizes before it splits.

    A tokenizer with given merges may produce ids above that of `<unk>`. The model reads these as `<unk>`.
    """
    table = json.loads(tokenizer.backend_json())
    table["normalizer"] = normalizer(normalization, table["normalizer"])
    write_whole(path, json.dumps(table, ensure_ascii=False))


def save_tokenizers(bundle: Bundle, folder: Path) -> None:
    """Write `tokenizer.json`, and `tokenizer.target.json` if the target has its own vocabulary."""
    save_tokenizer(bundle.source_tokenizer, bundle.normalization, folder / "tokenizer.json")
    if bundle.target_tokenizer is not bundle.source_tokenizer:
        save_tokenizer(bundle.target_tokenizer, bundle.normalization, folder / "tokenizer.target.json")


def normalizer(normalization: Normalization, vocabulary: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the bundle's normalization as normalizers of the tokenizers library, followed by the vocabulary's."""
    parts: list[dict[str, Any]] = []
    if normalization.strip_control:
        parts += [
            {"type": "Replace", "pattern": {"Regex": r"[\t\n\v\f\r\x{85}\x{2028}\x{2029}]+"}, "content": " "},
            {"type": "Replace", "pattern": {"Regex": r"[\x00-\x08\x0e-\x1f\x7f-\x{84}\x{86}-\x{9f}]"}, "content": ""},
            {"type": "Replace", "pattern": {"Regex": _unseen_pattern()}, "content": ""},
        ]
    if normalization.unicode != "none":
        parts.append({"type": normalization.unicode})
    parts += [vocabulary] if vocabulary else []
    return {"type": "Sequence", "normalizers": parts} if parts else None


def _unseen_pattern() -> str:
    """Return the pattern of characters without width, in the notation of the tokenizers library."""
    return re.sub(r"\\[uU]0*([\da-fA-F]+)", r"\\x{\1}", UNSEEN.pattern)


def save_sentencepiece(bundle: Bundle, folder: Path) -> None:
    """Write source.spm, target.spm, vocab.json and tokenizer_config.json. The sides share one table of ids."""
    symbols = bundle.source_tokenizer.symbols
    assert symbols is not None
    write_whole(folder / "source.spm", spm_content(bundle.source_tokenizer))
    write_whole(folder / "target.spm", spm_content(bundle.target_tokenizer))
    ids = {"</s>" if name == EOS else name: i for i, name in enumerate(symbols)}
    write_whole(folder / "vocab.json", to_json(ids))
    table: dict[str, Any] = {
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": bundle.model.config.max_length,
        **named_languages(bundle),
    }
    write_whole(folder / "tokenizer_config.json", to_json(table, indent=2) + "\n")


def named_languages(bundle: Bundle) -> dict[str, str]:
    """Return the languages of a bundle as settings of a tokenizer, without unknown ones."""
    return {f"{side}_lang": tag for side, tag in zip(("source", "target"), bundle.languages, strict=True) if tag}


def spm_content(tokenizer: Tokenizer) -> bytes:
    """Write a .spm file with the pieces, scores and character map of a tokenizer that was imported from one."""
    table = json.loads(tokenizer.backend_json())
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(piece, score, NORMAL) for piece, score in table["model"]["vocab"][:-1]]  # the last is our <unk>
    first = table["normalizer"]["normalizers"][0]
    character_map = b64decode(first["precompiled_charsmap"]) if first["type"] == "Precompiled" else b""
    return b"".join(
        [
            *(
                _message(1, _text(1, piece) + b"\x15" + struct.pack("<f", score) + _number(3, kind))
                for piece, score, kind in pieces
            ),
            _message(2, _number(3, UNIGRAM) + _number(40, 0) + _number(41, 1) + _number(42, 2)),
            _message(3, _text(1, "imported" if character_map else "identity") + _message(2, character_map)),
        ]
    )


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])
