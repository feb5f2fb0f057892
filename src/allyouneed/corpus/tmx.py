"""Pairs in a TMX file, the exchange format of translation memories (LISA, version 1.4b). lxml reads it as a stream."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import DataError
from .lines import opened
from .pair import Fault, Pair, Rows
from .tabular import name_columns
from .xml_stream import element_text, free, iterate_elements

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_REMEDY = 'before <tmx> add the line <!DOCTYPE tmx SYSTEM "tmx14.dtd">, with which names of HTML are read'


def read_tmx(path: Path, columns: Sequence[str] = ()) -> Rows:
    """The units of a TMX file that have both languages; `en` finds en-US too.

    The content of inline codes (`<ph>`, `<bpt>` and others) becomes part of the text.
    Without `columns` the languages are the two of the first unit, with any country, the header's source language first.
    Refuses malformed XML by its line. Of entities only the named characters of HTML are read; those that the file
    defines are never expanded, and nothing is fetched.
    """
    sides: list[tuple[str, ...]] = [(column,) for column in columns]  # the codes to look for, the best first
    first = ""
    remedy = "" if columns else f"; name the languages, {name_columns('en', 'it')}"
    with opened(path) as stream:
        for element in iterate_elements(stream, path, "header", "tu", remedy=_REMEDY):
            if etree.QName(element).localname == "header":
                first = element.get("srclang") or ""
                continue
            texts: dict[str, str] = {}
            try:
                for language, text in _variants(element):
                    texts[language] = texts.get(language) or text  # of several the first that is not empty
            except ValueError as error:
                yield Fault(element.sourceline, str(error))
                free(element)
                continue
            if not sides:
                sides = _two_languages(texts, first, f"{path}, line {element.sourceline}")
            pair = [_in_language(texts, codes) for codes in sides]
            missing = [codes[-1] for codes, text in zip(sides, pair, strict=True) if text is None]
            if missing:
                yield Fault(element.sourceline, f'has no "{missing[0]}"; it has {", ".join(texts) or "none"}{remedy}')
            else:
                yield Pair(pair[0] or "", pair[1] or "")
            free(element)


def _variants(unit: Any) -> Iterator[tuple[str, str]]:
    for variant in unit.iter("{*}tuv"):
        language = variant.get(_LANGUAGE) or variant.get("lang") or ""
        segment = variant.find("{*}seg")
        yield language, "" if segment is None else element_text(segment)


def _two_languages(texts: dict[str, str], first: str, where: str) -> list[tuple[str, ...]]:
    """The codes of each side: that of the unit, then its language alone, unless both sides have the same."""
    by_language: dict[str, tuple[str, ...]] = {}
    for code in texts:
        language = re.split("[-_]", code)[0].lower()
        by_language.setdefault(language, (code, language))
    if len(by_language) != 2 and len(texts) != 2:
        raise DataError(f"{where} has the languages {', '.join(texts)}; name two of them, {name_columns('en', 'it')}")
    sides = list(by_language.values()) if len(by_language) == 2 else [(code,) for code in texts]
    return sorted(sides, key=lambda codes: not (_is(codes[0], first) or _is(first, codes[-1])))


def _in_language(texts: dict[str, str], codes: Sequence[str]) -> str | None:
    """The text in the first of some codes that there is: as it is named, else with a country besides."""
    for code in codes:
        if matches := [language for language in texts if _is(language, code)]:
            return texts[min(matches, key=len)]
    return None


def _is(language: str, prefix: str) -> bool:
    language, prefix = language.lower().replace("_", "-"), prefix.lower().replace("_", "-")
    return language == prefix or language.startswith(f"{prefix}-")
