"""The parts that a `tokenizer.json` may have: those of our own vocabularies, and no others.

The format allows regular expressions that take exponential time, and rules that crash the library. A file that passes
this check has neither.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Regex, normalizers

from ..errors import DataError
from .character_map import CharacterMap, check_character_map

# A word with the space before it, one digit, a run of punctuation, or spaces: no token crosses these boundaries.
WORDS = r" ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
EVERY_CHARACTER = r"[\s\S]"
EDGE_BLANKS, REPEATED_BLANKS = r"^ +| +$", r" {2,}"

_PARTS = {
    "normalizer": {"Prepend", "Sequence", "Precompiled", "Replace"},
    "pre_tokenizer": {"Sequence", "Split", "ByteLevel", "Metaspace"},
    "post_processor": {"TemplateProcessing"},
    "decoder": {"Sequence", "ByteLevel", "ByteFallback", "Fuse", "Strip", "BPEDecoder", "Metaspace"},
    "model": {"BPE", "WordLevel", "Unigram"},
    "truncation": set[str](),
    "padding": set[str](),
}
_PATTERNS = {
    "Split": ({"Regex": WORDS}, {"Regex": EVERY_CHARACTER}, {"String": " "}),
    "Replace": ({"Regex": EDGE_BLANKS}, {"Regex": REPEATED_BLANKS}),
}


def start_tokens(post_processor: Any) -> list[str]:
    """The special tokens that a post-processor of the tokenizers library puts before every text: one, or none."""
    parts = json.loads(post_processor.__getstate__()).get("single", []) if post_processor else []
    names = [part["SpecialToken"]["id"] if "SpecialToken" in part else "" for part in parts]
    return names[: names.index("")] if "" in names else []


def take_character_map(normalizer: Any) -> tuple[CharacterMap | None, Any]:
    """The character map of a normalizer of the tokenizers library, if it has one, and the normalizer without it."""
    table = json.loads(normalizer.__getstate__()) if normalizer else {}
    parts = table.get("normalizers", [])
    if not parts or parts[0]["type"] != "Precompiled":
        return None, normalizer
    rest = [normalizers.Replace(Regex(part["pattern"]["Regex"]), part["content"]) for part in parts[1:]]
    return CharacterMap(b64decode(parts[0]["precompiled_charsmap"])), normalizers.Sequence(rest)


def put_character_map(text: str, character_map: CharacterMap | None) -> str:
    """The JSON of a tokenizer with the character map that `take_character_map` took."""
    if character_map is None:
        return text
    table = json.loads(text)
    part = {"type": "Precompiled", "precompiled_charsmap": b64encode(character_map.content).decode()}
    table["normalizer"]["normalizers"].insert(0, part)
    return json.dumps(table, ensure_ascii=False)


def join_symbols(text: str, symbols: Sequence[str] | None) -> str:
    """The JSON of a tokenizer with its `symbols`, the tokens of all ids, where the ids of the model are others."""
    return text if symbols is None else json.dumps(json.loads(text) | {"symbols": symbols}, ensure_ascii=False)


def split_symbols(text: str) -> tuple[str, list[str] | None]:
    """What `join_symbols` joined."""
    table = json.loads(text)
    symbols = table.pop("symbols", None)
    if symbols is None:
        return text, None
    if not isinstance(symbols, list) or not all(isinstance(name, str) for name in symbols):
        raise DataError("its symbols must be a list of strings")
    return json.dumps(table, ensure_ascii=False), symbols


def refuse_unknown_parts(text: str) -> None:
    """Refuse the JSON of a tokenizer with a normalizer, a split or a decoder that none of our vocabularies has."""
    table = json.loads(text)
    if not isinstance(table, dict):
        raise DataError("a tokenizer is a JSON object")
    for name, known in _PARTS.items():
        for part in _flat(table.get(name)):
            kind = part.get("type", "one without a type")
            if kind not in known:
                raise DataError(
                    f"its {name} is {kind!r:.40}; known is {', '.join(sorted(known)) or 'none'}. "
                    "Only vocabularies that allyouneed made can be read"
                )
            # A prefix of continued words crashes the library, and dropout would encode a text differently each time.
            for setting in ("continuing_subword_prefix", "dropout"):
                if part.get(setting):
                    raise DataError(f"its {name} has {setting}={part[setting]!r:.40}, as none of our vocabularies has")
            if kind == "Precompiled":
                _refuse_damaged_map(part)
            if kind in ("Split", "Replace") and part.get("pattern") not in _PATTERNS[kind]:
                raise DataError(
                    f"its {name} has the pattern {part.get('pattern')!r:.80}, as none of our vocabularies has"
                )


def _refuse_damaged_map(part: dict[str, Any]) -> None:
    try:
        check_character_map(b64decode(part["precompiled_charsmap"], validate=True))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the character map of its normalizer is damaged: {error}") from error


def _flat(part: Any) -> Iterator[dict[str, Any]]:
    """A part, and the parts of a sequence."""
    if part is None:
        return
    if not isinstance(part, dict):
        raise DataError(f"a part of it must be an object; got {part!r:.40}")
    yield part
    for name in ("normalizers", "pretokenizers", "processors", "decoders"):
        for inner in part.get(name) or ():
            yield from _flat(inner)
