"""XML from strangers: no document type, no entities of its own, nothing from elsewhere, bounded depth and size."""

import re
from typing import TypeAlias

from lxml import etree

from ..errors import DocumentError

Element: TypeAlias = etree._Element  # lxml has no public name for the type of its elements
MAX_XML_TAGS = 2**20  # in a document or a part of it: a tree of so many elements takes half a GiB


def parse_xml(data: bytes, *, part: str = "") -> Element:
    """Parse an XML document and return its root. Refuses, as a `DocumentError`, other text, XML with a document type,
    and too many tags, before it makes a tree of them. `part` names the part of the document, for the message.

    libxml2 stops at 256 levels and at 10 MB in one text.
    """
    if (tags := data.count(b"<")) > MAX_XML_TAGS:
        where = f" in {part}" if part else ""
        raise DocumentError(f"has {tags:,} tags{where}; at most {MAX_XML_TAGS:,} are read: split it")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        why = str(error.msg or "it is empty").partition("\n")[0]
        raise DocumentError(f"is not XML: line {error.lineno}: {why}") from error
    # Entities are declared there, which can grow without bound or name files of this machine.
    if root.getroottree().docinfo.internalDTD is not None:
        raise DocumentError("has a document type (<!DOCTYPE …>), which is not read; remove it")
    return root


def only_xml(text: str) -> str:
    """Remove the control characters that XML has no way to write."""
    return _NOT_XML.sub("", text)


def append_text(element: Element, text: str) -> None:
    """Add text behind all that an element has in it."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
