"""The parts that a `tokenizer.json` may have: those of our own vocabularies, and no others.

The format allows regular expressions that take exponential time, and rules that crash the library. A file that passes
this check has neither.
"""

import json
from collections.abc import Iterator
from typing import Any

from ..errors import DataError

# A word with the space before it, one digit, a run of punctuation, or spaces: no token crosses these boundaries.
WORDS = r" ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
EVERY_CHARACTER = r"[\s\S]"

_PARTS = {
    "normalizer": {"Prepend"},
    "pre_tokenizer": {"Sequence", "Split", "ByteLevel"},
    "post_processor": {"TemplateProcessing"},
    "decoder": {"Sequence", "ByteLevel", "ByteFallback", "Fuse", "Strip", "BPEDecoder"},
    "model": {"BPE", "WordLevel", "Unigram"},
    "truncation": set[str](),
    "padding": set[str](),
}
_PATTERNS = ({"Regex": WORDS}, {"Regex": EVERY_CHARACTER}, {"String": " "})


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
            if kind == "Split" and part.get("pattern") not in _PATTERNS:
                raise DataError(f"its {name} splits by {part.get('pattern')!r:.80}, as none of our vocabularies does")


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
