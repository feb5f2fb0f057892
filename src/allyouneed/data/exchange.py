"""Read pairs from the files of translation tools: TMX, XLIFF and gettext's .po.

Such files can have any size and come from strangers; lxml reads XML as a stream.
"""

import re
from collections.abc import Iterator, Sequence
from html.entities import html5
from pathlib import Path
from typing import IO, Any

from lxml import etree

from ..errors import DataError, refused
from ..text.lines import MAX_IN_MEMORY, decode_lines, opened
from ..text.po_catalogue import read_catalogue
from .headings import unclear_columns
from .pairs import Fault, Pair, Rows

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_REMEDY = 'before <tmx> add the line <!DOCTYPE tmx SYSTEM "tmx14.dtd">, with which names of HTML are read'
_FINISHED = {"translated", "reviewed", "signed-off", "final"}


def read_tmx(path: Path, columns: Sequence[str] = ()) -> Rows:
    """Read the units of a TMX file that have both languages. A column `en` also finds en-US.

    The content of inline codes (`<ph>`, `<bpt>` and others) becomes part of the text. Without `columns`, the languages
    are the two of the first unit, in any country variant, and the header's source language is the source. Refuses
    malformed XML, and names the line. Named HTML characters such as `&eacute;` are read; entities that the file defines
    are never expanded, and nothing is downloaded.
    """
    sides: list[tuple[str, ...]] = [(column,) for column in columns]  # the codes to look for on each side, best first
    first = ""
    remedy = "" if columns else "; name the languages as columns, such as en,it"
    with opened(path) as stream:
        for element in iterate_elements(stream, path, "header", "tu", remedy=_REMEDY):
            if etree.QName(element).localname == "header":
                first = element.get("srclang") or ""
                continue
            texts: dict[str, str] = {}
            try:
                for language, text in _variants(element):
                    texts[language] = texts.get(language) or text  # the first text that is not empty
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
    """Return the language codes for each side: the code of the first unit, then the code without a country.

    If both sides have the same language, only the full codes are used.
    """
    by_language: dict[str, tuple[str, ...]] = {}
    for code in texts:
        language = re.split("[-_]", code)[0].lower()
        by_language.setdefault(language, (code, language))
    if len(by_language) != 2 and len(texts) != 2:
        raise unclear_columns(f"{where} has {len(texts)} languages", [*texts])
    sides = list(by_language.values()) if len(by_language) == 2 else [(code,) for code in texts]
    return sorted(sides, key=lambda codes: not (_is(codes[0], first) or _is(first, codes[-1])))


def _in_language(texts: dict[str, str], codes: Sequence[str]) -> str | None:
    """Find the text in the first language of `codes` that exists, with exactly this code or with a country added."""
    for code in codes:
        if matches := [language for language in texts if _is(language, code)]:
            return texts[min(matches, key=len)]
    return None


def _is(language: str, prefix: str) -> bool:
    language = language.lower().replace("_", "-")
    prefix = prefix.lower().replace("_", "-")
    return language == prefix or language.startswith(f"{prefix}-")


def read_xliff(path: Path) -> Rows:
    """Read the segments of an XLIFF file that may be translated, with their targets.

    A target counts only if it is approved, or its state is translated, reviewed, signed-off or final, or it has no
    state. Otherwise it counts as missing and the pair has an empty target. The content of inline codes becomes part of
    the text. Refuses malformed XML, names the line, and expands no entities.
    """
    with opened(path) as stream:
        for unit in iterate_elements(stream, path, "trans-unit", "unit"):
            if may_be_translated(unit):
                for segment in [unit] if unit.find("{*}source") is not None else unit.iter("{*}segment"):
                    try:
                        yield from _pair(segment)
                    except ValueError as error:
                        yield Fault(segment.sourceline, str(error))
            free(unit)


def _pair(segment: Any) -> Iterator[Pair]:
    source = segment.find("{*}source")
    target = segment.find("{*}target")
    if source is not None:
        is_finished = target is not None and _is_finished(segment, target)
        yield Pair(element_text(source), element_text(target) if is_finished else "")


def _is_finished(segment: Any, target: Any) -> bool:
    """Return True if the target is finished, by the attributes of the unit (XLIFF 1.2) or the segment (2.x)."""
    state = segment.get("state") or target.get("state")
    approved = segment.get("approved")
    return approved == "yes" or (state in _FINISHED if state else approved != "no")


def may_be_translated(element: Any) -> bool:
    """Return True unless the nearest `translate` attribute, on the element or around it, is "no"."""
    around = (one.get("translate") for one in (element, *element.iterancestors()))
    return next((answer for answer in around if answer), "yes") != "no"


def read_po(path: Path) -> Rows:
    """Read the messages of a gettext catalogue and their translations: of plurals, only the first and the last form.

    A fuzzy message counts as untranslated and gets an empty target. Obsolete messages are skipped. Refuses a catalogue
    that does not follow the format, and names the line.
    """
    with opened(path) as stream:
        content = stream.read(MAX_IN_MEMORY + 1)
    if len(content) > MAX_IN_MEMORY:
        raise DataError(f"{path} is too large to be read into memory: more than {MAX_IN_MEMORY >> 20:,} MiB")
    lines = decode_lines(content, name=str(path))
    with refused(DataError, f"{path} is not a gettext catalogue", ValueError):
        catalogue = read_catalogue("\n".join(lines))
    for entry in catalogue:
        if entry.obsolete:
            continue
        forms = entry.msgstr_plural
        singular, plural = (forms[min(forms)], forms[max(forms)]) if forms else (entry.msgstr, "")
        yield Pair(entry.msgid, "" if entry.fuzzy else singular)
        if entry.msgid_plural:
            yield Pair(entry.msgid_plural, "" if entry.fuzzy else plural)


def iterate_elements(stream: IO[bytes], path: Path, *names: str, remedy: str = "") -> Iterator[Any]:
    """Yield the elements with these names, in any namespace, each as soon as its end is read.

    Refuses malformed XML, and names the line. Entities are not expanded, and nothing is downloaded. `remedy` is the
    advice in the message about an undeclared entity.
    """
    events = etree.iterparse(
        stream,
        events=("end",),
        tag=[f"{{*}}{name}" for name in names],
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    try:
        for _, element in events:
            yield element
    except etree.XMLSyntaxError as error:
        line = error.lineno
        why = str(error.msg).partition("\n")[0]
        if not line and events.error_log:  # lxml reports no line for an undeclared entity
            line = events.error_log[0].line
            why = events.error_log[0].message
        if why.startswith("Entity") and remedy:
            why += f"; {remedy}"
        raise DataError(f"{path}, line {line or 1} is not XML: {why}") from error


def free(element: Any) -> None:
    """Remove an element and all earlier elements from the tree, which would otherwise fill the memory."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def element_text(element: Any) -> str:
    """Return the text of an element and its descendants, with named HTML characters.

    Refuses other entities, as a `ValueError`.
    """
    return "".join(_text(element))


def _text(element: Any) -> Iterator[str]:
    # The content of <bpt>, <ph> and similar is code of the document, such as "<b>" or "{1}". It is part of the text.
    yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            yield _character(child)
        elif isinstance(child.tag, str):  # not a comment
            yield from _text(child)
        yield child.tail or ""


def _character(entity: Any) -> str:
    """Return the character for a named HTML entity.

    Refuses, as a `ValueError`, all other entities, and every entity in a file that defines its own.
    """
    document_type = entity.getroottree().docinfo.internalDTD
    defines_some = document_type is not None and next(document_type.iterentities(), None) is not None
    character = html5.get(f"{entity.name};")
    if character is None or defines_some:
        raise ValueError(f"has the entity {entity.text}, which is not expanded; write its text instead")
    return character
