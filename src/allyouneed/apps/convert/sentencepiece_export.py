"""The SentencePiece models of an imported vocabulary as the files of `MarianTokenizer`."""

import json
import struct
from base64 import b64decode
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...files import to_json, write_whole
from ...text.backends import EOS
from ...text.sentencepiece import CONTROL, NORMAL, UNIGRAM, UNKNOWN
from ...text.tokenizer import Tokenizer


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
    """The languages of a bundle as the settings of a tokenizer; without those that are unknown."""
    return {f"{side}_lang": tag for side, tag in zip(("source", "target"), bundle.languages, strict=True) if tag}


def spm_content(tokenizer: Tokenizer) -> bytes:
    """A .spm file with the pieces, scores and character map of a tokenizer that was imported from one."""
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
