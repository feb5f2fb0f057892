"""Pairs in a TMX file, the exchange format of translation memories (LISA, version 1.4b). lxml reads it as a stream."""

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
    Without `columns` the languages are the two of the first unit, the header's source language first.
    Refuses malformed XML by its line. Of entities only the named characters of HTML are read; those that the file
    defines are never expanded, and nothing is fetched.
    """
    languages, first = tuple(columns), ""
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
            if not languages:
                languages = _two_languages(texts, first, f"{path}, line {element.sourceline}")
            pair = [_in_language(texts, language) for language in languages]
            missing = [name for name, text in zip(languages, pair, strict=True) if text is None]
            if missing:
                yield Fault(element.sourceline, f'has no "{missing[0]}"; it has {", ".join(texts) or "none"}')
            else:
                yield Pair(pair[0] or "", pair[1] or "")
            free(element)


def _variants(unit: Any) -> Iterator[tuple[str, str]]:
    for variant in unit.iter("{*}tuv"):
        language = variant.get(_LANGUAGE) or variant.get("lang") or ""
        segment = variant.find("{*}seg")
        yield language, "" if segment is None else element_text(segment)


def _two_languages(texts: dict[str, str], first: str, where: str) -> tuple[str, ...]:
    if len(texts) != 2:
        raise DataError(f"{where} has the languages {', '.join(texts)}; name two of them, {name_columns('en', 'it')}")
    return tuple(sorted(texts, key=lambda language: not (_is(language, first) or _is(first, language))))


def _in_language(texts: dict[str, str], prefix: str) -> str | None:
    """The text in a language: as it is named, else with a country besides."""
    matches = [language for language in texts if _is(language, prefix)]
    return texts[min(matches, key=len)] if matches else None


def _is(language: str, prefix: str) -> bool:
    language, prefix = language.lower().replace("_", "-"), prefix.lower().replace("_", "-")
    return language == prefix or language.startswith(f"{prefix}-")
