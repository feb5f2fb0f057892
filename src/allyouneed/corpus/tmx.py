"""Pairs in a TMX file, the exchange format of translation memories (LISA, version 1.4b). lxml reads it as a stream."""

from collections.abc import Iterator, Sequence
from html.entities import html5
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import DataError
from .lines import opened
from .pair import Fault, Pair, Rows
from .tabular import name_columns

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_tmx(path: Path, columns: Sequence[str] = ()) -> Rows:
    """The units of a TMX file that have both languages; `en` finds en-US too.

    The content of inline codes (`<ph>`, `<bpt>` and others) becomes part of the text.
    Without `columns` the languages are the two of the first unit, the header's source language first.
    Refuses malformed XML by its line. Of entities only the named characters of HTML are read; those that the file
    defines are never expanded, and nothing is fetched.
    """
    languages, first = tuple(columns), ""
    with opened(path) as stream:
        for element in _elements(stream, path):
            if etree.QName(element).localname == "header":
                first = element.get("srclang") or ""
                continue
            texts: dict[str, str] = {}
            try:
                for language, text in _variants(element):
                    texts[language] = texts.get(language) or text  # of several the first that is not empty
            except ValueError as error:
                yield Fault(element.sourceline, str(error))
                _free(element)
                continue
            if not languages:
                languages = _two_languages(texts, first, f"{path}, line {element.sourceline}")
            pair = [_in_language(texts, language) for language in languages]
            missing = [name for name, text in zip(languages, pair, strict=True) if text is None]
            if missing:
                yield Fault(element.sourceline, f'has no "{missing[0]}"; it has {", ".join(texts) or "none"}')
            else:
                yield Pair(pair[0] or "", pair[1] or "")
            _free(element)


def _elements(stream: Any, path: Path) -> Iterator[Any]:
    events = etree.iterparse(
        stream, events=("end",), tag=("{*}header", "{*}tu"), resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        for _, element in events:
            yield element
    except etree.XMLSyntaxError as error:
        line, why = error.lineno, str(error.msg).partition("\n")[0]
        if not line and events.error_log:  # as with an entity that is not declared
            line, why = events.error_log[0].line, events.error_log[0].message
        if why.startswith("Entity"):
            why += '; before <tmx> add the line <!DOCTYPE tmx SYSTEM "tmx14.dtd">, with which names of HTML are read'
        raise DataError(f"{path}, line {line or 1} is not XML: {why}") from error


def _variants(unit: Any) -> Iterator[tuple[str, str]]:
    for variant in unit.iter("{*}tuv"):
        language = variant.get(_LANGUAGE) or variant.get("lang") or ""
        segment = variant.find("{*}seg")
        yield language, "" if segment is None else "".join(_text(segment))


def _text(element: Any) -> Iterator[str]:
    # The content of <bpt>, <ph> and others is code of the document, such as "<b>" or "{1}", and part of the text.
    yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            yield _character(child)
        elif isinstance(child.tag, str):  # no comment
            yield from _text(child)
        yield child.tail or ""


def _character(entity: Any) -> str:
    """The character that an entity names in HTML.

    Refuses, as a `ValueError`, all others, and every entity in a file that defines some.
    """
    document_type = entity.getroottree().docinfo.internalDTD
    defines_some = document_type is not None and next(document_type.iterentities(), None) is not None
    character = html5.get(f"{entity.name};")
    if character is None or defines_some:
        raise ValueError(f"has the entity {entity.text}, which is not expanded; write what it stands for")
    return character


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


def _free(element: Any) -> None:
    # An element stays in the tree until it is removed.
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]
