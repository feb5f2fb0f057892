"""Parse XML from strangers: no document type, no entities, no downloads, limited depth and size."""

import re
from typing import TypeAlias

from lxml import etree

from ..errors import DocumentError

Element: TypeAlias = etree._Element  # lxml has no public name for this type
MAX_XML_TAGS = 2**20  # in one part of a document; a tree of so many elements takes half a GiB


def parse_xml(data: bytes, *, part: str = "") -> Element:
    """Parse an XML document and return its root. `part` names the part of the document in messages.

    Refuses, as a `DocumentError`, anything that is not XML, a document type, and too many tags; the tags are counted
    before a tree is built. libxml2 also stops at 256 levels, and at a text of 10 MB.
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
    # A document type can declare entities that grow without bound or read files of this machine.
    if root.getroottree().docinfo.internalDTD is not None:
        raise DocumentError("has a document type (<!DOCTYPE …>), which is not read; remove it")
    return root


def only_xml(text: str) -> str:
    """Remove the control characters that XML cannot represent."""
    return _NOT_XML.sub("", text)


def append_text(element: Element, text: str) -> None:
    """Add text at the end of an element's content."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
