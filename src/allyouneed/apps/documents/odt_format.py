"""OpenDocument texts (.odt): paragraphs and headings, also in tables, headers, footers, notes and frames."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml import etree

from ...archive import Archive
from ...errors import DocumentError
from ...safe_xml import append_text, only_xml
from .office_document import OfficeParagraph, office_document
from .pieces import BLANK_PARTS, Piece, StandsFor, opaque_point
from .unit import Document, DocumentOptions

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_LIBREOFFICE = "{http://openoffice.org/2009/office}"  # what its editor notes for itself
_KINDS = ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text-template")
_WRAPPERS = frozenset(f"{_TEXT}{name}" for name in ("span", "a", "meta"))
_BLANKS: dict[str, StandsFor] = {f"{_TEXT}line-break": "break", f"{_TEXT}s": "blank"}
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")
_RANGE_END = re.compile(r"-(?:start|end)$")  # of a bookmark, an annotation and others
_RANGE_NAMES = (f"{_TEXT}name", f"{_OFFICE}name", f"{_TEXT}id", f"{_TEXT}change-id")
_LEFT_OUT = frozenset([f"{_TEXT}tracked-changes", f"{_OFFICE}annotation"])


class InlineElement(NamedTuple):
    """An element around a part of a paragraph."""

    element: etree._Element


def read_odt_document(data: bytes, options: DocumentOptions) -> Document:
    """An OpenDocument text. Refuses what is no such archive, and an encrypted one.

    Not translated: comments, deleted text, formulas and fields.
    """
    archive = Archive(data)
    if archive.read("mimetype").decode("ascii", "replace").strip() not in _KINDS:
        raise DocumentError("has no OpenDocument text in it")
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise DocumentError("is encrypted; save it without a password")
    names = ["content.xml", *({"styles.xml"} & archive.names)]  # the latter has headers and footers
    return office_document(archive, names, _paragraphs, _build, label=_label, collapse=True, numbers=options.numbers)


def _label(part: str) -> str:
    return "" if part == "content.xml" else "header or footer, "


def _paragraphs(root: etree._Element) -> Iterator[OfficeParagraph]:
    unseen = _unseen_styles(root)
    for element in root.iter(*_PARAGRAPHS):
        if not any(above.tag in _LEFT_OUT for above in element.iterancestors()):
            yield OfficeParagraph(element, list(_items(element, unseen)))


def _unseen_styles(root: etree._Element) -> set[str]:
    """The automatic styles that only note an editing session: LibreOffice cuts texts into spans of such styles."""
    return {
        str(style.get(f"{_STYLE}name"))
        for style in root.iter(f"{_STYLE}style")
        if style.get(f"{_STYLE}parent-style-name") is None
        and all(str(name).startswith(_LIBREOFFICE) for child in style for name in child.attrib)
        and all(len(child) == 0 for child in style)
    }


def _items(parent: etree._Element, unseen: set[str]) -> Iterator[Piece]:
    """The content of a paragraph."""
    yield from _text_items(parent.text)
    for child in parent:
        if child.tag in _WRAPPERS:
            is_seen = child.tag != f"{_TEXT}span" or child.get(f"{_TEXT}style-name") not in unseen
            if is_seen:
                yield Piece("open", name=str(child.tag), source=InlineElement(child))
            yield from _items(child, unseen)
            if is_seen:
                yield Piece("close", name=str(child.tag), source=InlineElement(child))
        elif child.tag == f"{_TEXT}tab":
            yield Piece("boundary", source=child)
        elif isinstance(child.tag, str):
            yield _point(child)
        yield from _text_items(child.tail)


def _text_items(text: str | None) -> Iterator[Piece]:
    for match in BLANK_PARTS.finditer(text or ""):
        yield Piece("text", match.group())


def _point(element: etree._Element) -> Piece:
    if element.tag in _BLANKS:
        return Piece("point", source=element, stands_for=_BLANKS[str(element.tag)])
    content = "".join(str(text) for text in element.itertext())
    has_paragraphs = next(element.iter(*_PARAGRAPHS), None) is not None
    is_field = str(element.tag).startswith(_TEXT) and content.strip() and not has_paragraphs
    if is_field:
        return opaque_point(content, element)
    name = next((value for one in _RANGE_NAMES if (value := element.get(one))), "")
    return Piece("point", source=element, range=name and f"{_RANGE_END.sub('', str(element.tag))} {name}")


def _build(paragraph: OfficeParagraph, pieces: Sequence[Piece]) -> None:
    """Replace the content of a paragraph."""
    parts = [paragraph.element]
    _clear(paragraph.element)
    for piece in pieces:
        source = piece.source
        if piece.kind == "text":
            append_text(parts[-1], only_xml(piece.text))
        elif not isinstance(source, InlineElement):
            source.tail = None
            parts[-1].append(source)
        elif parts[-1] is source.element:
            parts.pop()
        else:
            _clear(source.element)
            source.element.tail = None
            parts[-1].append(source.element)
            parts.append(source.element)


def _clear(element: etree._Element) -> None:
    element.text = None
    for child in list(element):
        element.remove(child)
