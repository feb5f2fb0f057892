"""Languages by their BCP 47 tags: English names, pairs such as "en-it", and guesses from the names of files."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from ..errors import ConfigError
from .language_names import FOREIGN_NAMES, LANGUAGE_NAMES, OWN_NAMES

_PRIVATE = "-x-"
_TAG = r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*"
# In "pt-BR-en" the first tag has a region in capitals or digits, and may have a script of four letters before it.
_PAIR = re.compile(rf"([A-Za-z]{{2,8}}(?:-[A-Z][a-z]{{3}})?(?:-[A-Z]{{2}}|-\d{{3}})?)-({_TAG})|({_TAG}):({_TAG})")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def language_name(code: str) -> str:
    """Return the English name of a language, with its private part in brackets; for a rare language, the code."""
    code, private, name = code.partition(_PRIVATE)
    if private:
        return f"{language_name(code)} ({name})"
    return LANGUAGE_NAMES.get(code) or LANGUAGE_NAMES.get(code.partition("-")[0], code)


def primary_language(tag: str) -> str:
    """Return the language of a tag without script and region: "pt" for pt-BR; "" if the tag names no language."""
    code = re.split("[-_]", tag.lower())[0]
    return "" if code in ("und", "zxx", "mul", "mis") else code


def is_foreign(tag: str, languages: Collection[str]) -> bool:
    """Return True if a tag marks text in a language outside `languages`, or in no language (zxx)."""
    code = re.split("[-_]", tag.lower())[0]
    return (
        len(code) > 1 and code not in ("und", "mul", "mis") and code not in languages
    )  # Word marks text without a language as x-none


_RIGHT_TO_LEFT = frozenset(
    ["ar", "arc", "ckb", "dv", "fa", "he", "iw", "ji", "nqo", "ps", "sd", "syr", "ug", "ur", "yi"]
)
_RIGHT_TO_LEFT_SCRIPTS = frozenset(["adlm", "arab", "hebr", "mand", "nkoo", "rohg", "samr", "syrc", "thaa"])


def is_right_to_left(tag: str) -> bool:
    """Return True if a language is written from right to left, by the script in its tag or its usual script."""
    language, *others = re.split("[-_]", tag.lower())
    script = next((part for part in others[:1] if len(part) == 4), "")
    return script in _RIGHT_TO_LEFT_SCRIPTS or (not script and language in _RIGHT_TO_LEFT)


def turned_direction(source: str, target: str) -> Literal["", "rtl", "ltr"]:
    """Return the writing direction of the target language if that of the source language differs, else ""."""
    if is_right_to_left(source) == is_right_to_left(target):
        return ""
    return "rtl" if is_right_to_left(target) else "ltr"


def with_name(code: str, name: str) -> str:
    """Add a name to a tag as its private part (BCP 47): "en" and "small.2" give "en-x-small-2"."""
    parts = re.findall("[a-z0-9]{1,8}", _plain(name))
    return code + _PRIVATE + "-".join(parts or ["model"])


def model_name(folder: str) -> str:
    """Name a model that is not for a pair of languages after its folder, in ASCII letters and digits.

    If the result would be read as a language, it begins with "model".
    """
    name = "-".join(re.findall("[a-z0-9]+", _plain(folder))) or "model"
    return f"model-{name}" if find_language(name) else name


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKD", name).lower()


def find_language(text: str) -> str:
    """Find a common language by its tag, its English name or its own name, ignoring case. Returns its tag, or ""."""
    text = text.strip()
    code, mark, region = text.replace("_", "-").partition("-")
    if code.lower() in LANGUAGE_NAMES and (not mark or re.fullmatch(r"[A-Za-z]{4}|[A-Za-z]{2}|\d{3}", region)):
        region = region.title() if len(region) == 4 else region.upper()
        return f"{code.lower()}{mark}{region}"
    return _tags_by_name().get(text.casefold(), "")


@cache
def _tags_by_name() -> dict[str, str]:
    foreign = [(tag, name) for tag, names in FOREIGN_NAMES.items() for name in names.split(", ")]
    names = [*LANGUAGE_NAMES.items(), *OWN_NAMES.items(), *foreign]
    return {name.casefold(): tag for tag, name in names}


def require_language(name: str, tag: str) -> None:
    """Refuse text that does not have the form of a BCP 47 tag: "en", "pt-BR", "zh-Hans"."""
    if not re.fullmatch(_TAG, tag):
        raise ConfigError(f'{name} must be a language tag, like "en" or "pt-BR"; got {tag!r:.60}')


def parse_pair(pair: str) -> tuple[str, str]:
    """Read a pair of languages: "en-it", "pt-BR-en" or, for longer tags, "sr-Latn:en". Refuses anything else."""
    match = _PAIR.fullmatch(pair)
    if not match:
        raise ConfigError(f'languages are two tags, like "en-it" or "en:pt-BR"; got {pair!r:.60}')
    first, second, *others = match.groups()
    return (first, second) if first else (others[0], others[1])


def guess_languages(files: str | Sequence[str], columns: Sequence[str] = ()) -> tuple[str, str] | None:
    """Guess the languages of two columns, or of two files by their endings (train.en, train.it.gz); None if unclear."""
    if len(columns) == 2 and all(tags := [find_language(column) for column in columns]) and tags[0] != tags[1]:
        return tags[0], tags[1]
    if isinstance(files, str) or len(files) != 2:
        return None
    endings = [[suffix for suffix in Path(file.lower()).suffixes if suffix not in _COMPRESSED] for file in files]
    source, target = ((some[-1][1:] if some else "") for some in endings)
    is_clear = source != target and source in LANGUAGE_NAMES and target in LANGUAGE_NAMES
    return (source, target) if is_clear else None
