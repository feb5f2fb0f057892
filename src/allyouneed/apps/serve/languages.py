"""Languages: a pair that a model translates, and codes as clients write them."""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class ModelKey(NamedTuple):
    """The pair of languages that a model translates, as BCP 47 tags."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


class Language(NamedTuple):
    """A source language, and the languages it can be translated into."""

    code: str
    name: str
    targets: tuple[str, ...]


# Codes that clients use for one and the same language. LibreTranslate calls Brazilian Portuguese pb, and the two
# ways to write Chinese zh and zt; iw, in and ji are the ISO codes of 1988.
_SYNONYMS: Sequence[frozenset[str]] = [
    frozenset(group.split())
    for group in (
        "pb pt-br",
        "zh zh-hans zh-cn zh-sg",
        "zt zh-hant zh-tw zh-hk",
        "no nb nb-no no-no",
        "he iw",
        "id in",
        "yi ji",
        "tl fil",
    )
]


def find_code(code: str, served: Collection[str]) -> str | None:
    """The served code that a client means; None if there is none.

    That is the code itself in upper or lower case, a synonym, or, where only one fits, the same language with or
    without its region or script (`en-GB` means `en`; `pt` means `pt-BR` if no other Portuguese is served).
    """
    name = code.strip().replace("_", "-").lower()
    by_name = {served_code.lower(): served_code for served_code in served}
    if name in by_name:
        return by_name[name]
    for group in _SYNONYMS:
        if name in group and (same := sorted(group & by_name.keys())):
            return by_name[same[0]]
    language = base_language(name)
    if language in by_name:
        return by_name[language]
    variants = [other for other in by_name if base_language(other) == language]
    return by_name[variants[0]] if name == language and len(variants) == 1 else None


def base_language(code: str) -> str:
    """The language of a code, without region or script: `pt` of `pt-BR`."""
    return code.replace("_", "-").partition("-")[0].lower()
