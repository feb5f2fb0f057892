"""XML as a stream of elements, from files of any size that may come from strangers. lxml reads it."""

from collections.abc import Iterator
from html.entities import html5
from pathlib import Path
from typing import IO, Any

from lxml import etree

from ..errors import DataError


def iterate_elements(stream: IO[bytes], path: Path, *names: str, remedy: str = "") -> Iterator[Any]:
    """The elements with these names, in any namespace, each as soon as it has ended.

    Refuses malformed XML by its line. Entities are not expanded, and nothing is fetched; `remedy` says what to do about
    one that is not declared.
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
        line, why = error.lineno, str(error.msg).partition("\n")[0]
        if not line and events.error_log:  # as with an entity that is not declared
            line, why = events.error_log[0].line, events.error_log[0].message
        if why.startswith("Entity") and remedy:
            why += f"; {remedy}"
        raise DataError(f"{path}, line {line or 1} is not XML: {why}") from error


def free(element: Any) -> None:
    """Remove an element and those before it from the tree."""
    # An element stays in the tree until it is removed.
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def element_text(element: Any) -> str:
    """The text of an element and of those in it; of entities the named characters of HTML.

    Refuses, as a `ValueError`, other entities.
    """
    return "".join(_text(element))


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
