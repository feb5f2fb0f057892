"""The parts that a `tokenizer.json` may have: those of our own vocabularies, and others that are safe.

The format allows regular expressions that take exponential time, rules that crash the library, and long lists of rules,
each of which doubles the length of a text. A file that passes the check here has none of these.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Regex, normalizers

from ..errors import DataError
from .character_map import CharacterMap, check_character_map

# A word with the space before it, one digit, a run of punctuation, or spaces. No token crosses their boundaries.
WORDS = r" ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
# A string between spaces, with the space before it, or spaces. "<" stands alone, so that no token looks special.
SPACED = r" ?[^\s<]+| ?<|\s+(?!\S)|\s+"
EVERY_CHARACTER = r"[\s\S]"
_TAG_LETTER = r"[^\\^$.*+?()\[\]{}|]|\\[\^$.*+?()\[\]{}|]"  # as it is or, if it has a meaning in patterns, escaped
_TAGS = re.compile(rf"(?:(?:{_TAG_LETTER})+\|)*{re.escape(EVERY_CHARACTER)}")  # the form of `tag_pattern`
# Splits the name of a special token inside a text, so that it is plain text.
INSIDE_SPECIAL = r"<(?=(?:pad|sos|eos|unk)>)"

EDGE_BLANKS = r"^ +| +$"
REPEATED_BLANKS = r" {2,}"

OUR_PARTS = {
    "normalizer": {"Prepend", "NFD"},
    "pre_tokenizer": {"Sequence", "Split", "ByteLevel"},
    "decoder": {"Sequence", "ByteLevel", "ByteFallback", "Fuse", "Strip", "BPEDecoder"},
    "model": {"BPE", "WordLevel", "Unigram"},
}
SAFE_PARTS = {
    "normalizer": {
        "Sequence",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Lowercase",
        "StripAccents",
        "Strip",
        "Replace",
        "Precompiled",
    },
    "pre_tokenizer": {"Metaspace", "Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "BertPreTokenizer"},
    "decoder": {"Metaspace", "Replace"},
    "model": set[str](),
}
_PARTS = {
    **{name: ours | SAFE_PARTS[name] for name, ours in OUR_PARTS.items()},
    "post_processor": {"TemplateProcessing"},
    "truncation": set[str](),
    "padding": set[str](),
}
_PATTERNS = {
    "Split": (
        {"Regex": WORDS},
        {"Regex": SPACED},
        {"Regex": EVERY_CHARACTER},
        {"Regex": INSIDE_SPECIAL},
        {"String": " "},
    ),
    "Replace": ({"String": " "}, {"String": "▁"}, {"Regex": EDGE_BLANKS}, {"Regex": REPEATED_BLANKS}),
}
_OUR_SETTINGS = {"add_prefix_space": False, "use_regex": False, "ignore_merges": False, "invert": False}
_OUR_TOKENS = {"<pad>", "<sos>", "<eos>"}
_PAGE_PARTS = {  # parts that the exported page can handle (convert/web/tokenizer.js)
    "normalizer": OUR_PARTS["normalizer"] | {"Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "Replace"},
    "pre_tokenizer": OUR_PARTS["pre_tokenizer"] | {"Metaspace"},
    "decoder": OUR_PARTS["decoder"] | {"Metaspace", "Replace"},
    "model": OUR_PARTS["model"],
}
_PAGE_SPLITS = [(pattern, "Isolated") for pattern in (WORDS, SPACED, EVERY_CHARACTER)] + [
    (INSIDE_SPECIAL, "MergedWithPrevious"),
    (" ", "Removed"),
]
_LONGEST = 8  # characters of a replacement or a prefix
# How many times as long a part can make a text; a Replace, at most as many times as its replacement is long. The
# longest mapping of Unicode has 18 characters. All parts of a tokenizer together may make a text MOST_GROWTH times as
# long.
_GROWTH = {
    "NFC": 4,
    "NFD": 4,
    "NFKC": 18,
    "NFKD": 18,
    "Lowercase": 2,
    "Precompiled": 18,
    "ByteLevel": 2,
    "Metaspace": 2,
}
MOST_GROWTH = 1_000


def start_tokens(post_processor: Any) -> list[str]:
    """Return the special token that a post-processor of the tokenizers library puts first, as a list of one or none."""
    parts = json.loads(post_processor.__getstate__()).get("single", []) if post_processor else []
    names = [part["SpecialToken"]["id"] if "SpecialToken" in part else "" for part in parts]
    return names[: names.index("")] if "" in names else []


def take_character_map(normalizer: Any) -> tuple[CharacterMap | None, Any]:
    """Take the character map out of a normalizer of the tokenizers library. Returns the map, if any, and the rest."""
    table = json.loads(normalizer.__getstate__()) if normalizer else {}
    part = _character_map(table)
    if part is None:
        return None, normalizer
    rest = [normalizers.Replace(Regex(one["pattern"]["Regex"]), one["content"]) for one in table["normalizers"][1:]]
    return CharacterMap(b64decode(part["precompiled_charsmap"])), normalizers.Sequence(rest)


def put_character_map(text: str, character_map: CharacterMap | None) -> str:
    """Put a character map, as `take_character_map` returned it, back into the JSON of a tokenizer."""
    if character_map is None:
        return text
    table = json.loads(text)
    part = {"type": "Precompiled", "precompiled_charsmap": b64encode(character_map.content).decode()}
    table["normalizer"]["normalizers"].insert(0, part)
    return json.dumps(table, ensure_ascii=False)


def tag_pattern(tags: Sequence[str]) -> str:
    """Return the pattern of a vocabulary of characters: one of the tags, the longest that matches, or any character."""
    longest_first = sorted(tags, key=lambda tag: (-len(tag), tag))
    return "|".join([*(re.sub(r"[\^$.*+?()\[\]{}|]", r"\\\g<0>", tag) for tag in longest_first), EVERY_CHARACTER])


def join_symbols(text: str, symbols: Sequence[str] | None) -> str:
    """Add `symbols`, the tokens of all ids, to the JSON of a tokenizer, if the ids of the model differ."""
    return text if symbols is None else json.dumps(json.loads(text) | {"symbols": symbols}, ensure_ascii=False)


def split_symbols(text: str) -> tuple[str, list[str] | None]:
    """Undo `join_symbols`."""
    table = json.loads(text)
    symbols = table.pop("symbols", None)
    if symbols is None:
        return text, None
    if not isinstance(symbols, list) or not all(isinstance(name, str) for name in symbols):
        raise DataError("its symbols must be a list of strings")
    return json.dumps(table, ensure_ascii=False), symbols


def refuse_unknown_parts(text: str) -> None:
    """Refuse a tokenizer's JSON with a normalizer, a split or a decoder that none of our vocabularies has."""
    table = json.loads(text)
    if not isinstance(table, dict):
        raise DataError("a tokenizer is a JSON object")
    for name, known in _PARTS.items():
        growth = 1
        for part in _flat(table.get(name)):
            kind = part.get("type", "one without a type")
            if kind not in known:
                raise DataError(
                    f"its {name} is {kind!r:.40}, but only {', '.join(sorted(known)) or 'none'} can be read safely"
                )
            # A prefix of continued words crashes the library, and so does stripping the end of a short token. Dropout
            # would encode a text differently each time.
            for setting in ("continuing_subword_prefix", "stop", "dropout"):
                if part.get(setting):
                    raise DataError(f"its {name} has {setting}={part[setting]!r:.40}, as none of our vocabularies has")
            if kind == "Precompiled":
                _refuse_damaged_map(part)
            if kind in _PATTERNS and part.get("pattern") not in _PATTERNS[kind] and not _is_of_tags(part):
                raise DataError(f"its {name} has the pattern {part.get('pattern')!r:.80}, which cannot be read safely")
            added = str(part.get("content" if kind == "Replace" else "prepend", ""))
            if len(added) > _LONGEST:
                raise DataError(f"its {name} adds {added!r:.40}; at most {_LONGEST} characters can be added")
            growth *= max(1, len(added)) if kind == "Replace" else _GROWTH.get(kind, 1)
            if growth > MOST_GROWTH:
                raise DataError(f"its {name} can make a text more than {MOST_GROWTH:,} times as long")
            if len(part.get("single", ())) > _LONGEST:
                raise DataError(f"its {name} repeats a text or adds more than {_LONGEST} special tokens")
    _refuse_lost_characters(table)


def _is_of_tags(part: Mapping[str, Any]) -> bool:
    """Return True if a part splits a text by a pattern that `tag_pattern` may have made, which is safe."""
    pattern = part.get("pattern")
    text = pattern.get("Regex") if isinstance(pattern, dict) and len(pattern) == 1 else None
    is_split = part.get("type") == "Split" and part.get("behavior") == "Isolated"
    return is_split and isinstance(text, str) and _TAGS.fullmatch(text) is not None


def _refuse_lost_characters(table: Mapping[str, Any]) -> None:
    """Refuse merges of words with neither an unknown token nor bytes, because other characters would be dropped."""
    model, words = table.get("model") or {}, [*_flat(table.get("pre_tokenizer"))]
    has_bytes = model.get("byte_fallback") or any(part.get("type") == "ByteLevel" for part in words)
    if words and model.get("type") == "BPE" and model.get("unk_token") is None and not has_bytes:
        raise DataError("its merges have neither <unk> nor bytes, so that characters would be lost")


def describe_foreign_part(text: str) -> str:
    """Name the part of a tokenizer's JSON that only the tokenizers library can handle; "" if there is none."""
    table = json.loads(text)
    if character_map := _character_map(table.get("normalizer")):
        table["normalizer"]["normalizers"].remove(character_map)
    for name, known in _PAGE_PARTS.items():
        for part in _flat(table.get(name)):
            changed = [] if name == "decoder" else _foreign_settings(part)
            if part["type"] not in known or changed:
                return f"its {name} is {' with '.join([part['type'], *changed])}"
    # The library looks at the original text to decide what comes first, but these parts remove some of that text.
    before = [part for name in ("normalizer", "pre_tokenizer") for part in _flat(table.get(name))]
    before = [part for part in before if part["type"] in ("Strip", "Replace", "Split", "Metaspace")]
    if any(part.get("prepend_scheme") == "first" for part in before[1:]):
        return f"its pre_tokenizer is Metaspace with prepend_scheme='first' after {before[0]['type']}"
    others = [token["content"] for token in table["added_tokens"] if token["content"] not in _OUR_TOKENS]
    return f"it has the added token {others[0]!r:.40}" if others else ""


def _foreign_settings(part: dict[str, Any]) -> list[str]:
    settings = [f"{key}={part[key]!r}" for key, ours in _OUR_SETTINGS.items() if part.get(key, ours) != ours]
    is_read = (
        _is_of_tags(part) or (next(iter(part.get("pattern", {"": ""}).values())), part.get("behavior")) in _PAGE_SPLITS
    )
    if part["type"] == "Split" and not is_read:
        settings.append(f"behavior={part['behavior']!r}")
    return settings


def _character_map(normalizer: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the part with the character map if that part comes first. The library applies later ones itself."""
    first = (normalizer or {}).get("normalizers", [])[:1]
    return first[0] if first and first[0]["type"] == "Precompiled" else None


def _refuse_damaged_map(part: dict[str, Any]) -> None:
    try:
        check_character_map(b64decode(part["precompiled_charsmap"], validate=True))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the character map of its normalizer is damaged: {error}") from error


def _flat(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the component itself or, if it is a sequence, its components."""
    if part is None:
        return
    if not isinstance(part, dict):
        raise DataError(f"a part of it must be an object; got {part!r:.40}")
    yield part
    for name in ("normalizers", "pretokenizers", "processors", "decoders"):
        for inner in part.get(name) or ():
            yield from _flat(inner)
