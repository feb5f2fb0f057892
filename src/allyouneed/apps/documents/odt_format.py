"""OpenDocument texts (.odt): paragraphs and headings, including those in tables, headers, footers, notes and frames."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ...config.language_tags import is_foreign, primary_language, turned_direction
from ...data.archive import Archive
from ...data.safe_xml import Element, append_text, only_xml
from ...errors import DocumentError
from .office_document import OfficeParagraph, office_document, office_script
from .pieces import BLANK_PARTS, Piece, StandsFor, opaque_point
from .unit import Document, DocumentOptions

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_WRITING_MODE = f"{_STYLE}writing-mode"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_LIBREOFFICE = "{http://openoffice.org/2009/office}"  # LibreOffice's own notes on editing
_KINDS = ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text-template")
_WRAPPERS = frozenset(f"{_TEXT}{name}" for name in ("span", "a", "meta"))
_BLANKS: dict[str, StandsFor] = {f"{_TEXT}line-break": "break", f"{_TEXT}s": "blank"}
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")
_RANGE_END = re.compile(r"-(?:start|end)$")  # of a bookmark, an annotation and similar
_RANGE_NAMES = (f"{_TEXT}name", f"{_OFFICE}name", f"{_TEXT}id", f"{_TEXT}change-id")
_LEFT_OUT = frozenset([f"{_TEXT}tracked-changes", f"{_OFFICE}annotation"])


class InlineElement(NamedTuple):
    """An element around a part of a paragraph."""

    element: Element


def read_odt_document(data: bytes, options: DocumentOptions) -> Document:
    """Read an OpenDocument text. Refuses other files and archives, and an encrypted document.

    Comments, deleted text, formulas, fields, and words marked as a language other than source and target are not
    translated. Translated words are marked as the target language.
    """
    archive = Archive(data)
    if archive.read("mimetype").decode("ascii", "replace").strip() not in _KINDS:
        raise DocumentError("has no OpenDocument text in it")
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise DocumentError("is encrypted; save it without a password")
    names = ["content.xml", *({"styles.xml"} & archive.names)]  # styles.xml has headers and footers
    return office_document(
        archive, names, partial(_paragraphs, options=options), _build, label=_label, collapse=True, options=options,
        name_language=partial(_name_language, options=options), styles="styles.xml",
    )  # fmt: skip


def _label(part: str) -> str:
    return "" if part == "content.xml" else "header or footer, "


def _paragraphs(root: Element, options: DocumentOptions) -> Iterator[OfficeParagraph]:
    unseen, foreign = _unseen_styles(root), _foreign_styles(root, options)
    for element in root.iter(*_PARAGRAPHS):
        is_left_out = any(above.tag in _LEFT_OUT for above in element.iterancestors())
        if not is_left_out:
            kept = [one for one in (element, *element.iter(f"{_TEXT}span")) if one.get(f"{_TEXT}style-name") in foreign]
            texts = [(_content(one), foreign[str(one.get(f"{_TEXT}style-name"))]) for one in kept]
            pieces = [] if kept[:1] == [element] else list(_items(element, unseen, foreign))
            yield OfficeParagraph(element, pieces, foreign=texts[:1] if not pieces else texts)


def _content(element: Element) -> str:
    return "".join(str(text) for text in element.itertext())


def _foreign_styles(root: Element, options: DocumentOptions) -> dict[str, str]:
    """Map the styles of words in languages other than source and target to these languages.

    The result is empty if the source language is unknown.
    """
    languages_read = {primary_language(one) for one in (options.source_language, options.target_language)}
    return {
        str(style.get(f"{_STYLE}name")): str(properties.get(f"{_FO}language", ""))
        for style in root.iter(f"{_STYLE}style")
        for properties in style.iter(f"{_STYLE}text-properties")
        if options.source_language
        and _is_marked(properties)
        and is_foreign(properties.get(f"{_FO}language", ""), languages_read)
    }


def _is_marked(properties: Element) -> bool:
    return properties.get(f"{_FO}language", "none") not in ("none", "zxx")


def _name_language(root: Element, options: DocumentOptions) -> bool:
    """Change language marks to the target language, and its group of scripts."""
    language, *others = options.target_language.split("-")
    country = next((part for part in others if len(part) == 2), "none")
    languages_read = {primary_language(one) for one in (options.source_language, options.target_language)}
    group = office_script(options.target_language)
    marks = [
        properties
        for properties in root.iter(f"{_STYLE}text-properties")
        if _is_marked(properties)
        and not (options.source_language and is_foreign(properties.get(f"{_FO}language", ""), languages_read))
    ]
    for properties in marks:
        properties.set(f"{_FO}language", language)
        properties.set(f"{_FO}country", country)
        if group:
            properties.set(f"{_STYLE}language-{group}", language)
            properties.set(f"{_STYLE}country-{group}", country)
    return _turn(root, options) or bool(marks)


def _turn(root: Element, options: DocumentOptions) -> bool:
    """Set the writing direction of styles, and of paragraphs by default, to that of the target language."""
    direction = turned_direction(options.source_language, options.target_language)
    if not direction:
        return False
    turned = {"rtl": "rl-tb", "ltr": "lr-tb"}[direction]
    properties = [one for one in root.iter() if one.get(_WRITING_MODE) in ("lr-tb", "lr", "rl-tb", "rl")]
    for default in root.iter(f"{_STYLE}default-style"):
        if default.get(f"{_STYLE}family") == "paragraph":
            properties += default.iter(f"{_STYLE}paragraph-properties")
    for one in properties:
        one.set(_WRITING_MODE, turned)
    return bool(properties)


def _unseen_styles(root: Element) -> set[str]:
    """Find the automatic styles that only record an editing session.

    LibreOffice cuts texts into spans with such styles.
    """
    return {
        str(style.get(f"{_STYLE}name"))
        for style in root.iter(f"{_STYLE}style")
        if style.get(f"{_STYLE}parent-style-name") is None
        and all(str(name).startswith(_LIBREOFFICE) for child in style for name in child.attrib)
        and all(len(child) == 0 for child in style)
    }


def _items(parent: Element, unseen: set[str], foreign: Collection[str]) -> Iterator[Piece]:
    """Yield the content of a paragraph."""
    yield from _text_items(parent.text)
    for child in parent:
        if child.tag == f"{_TEXT}span" and child.get(f"{_TEXT}style-name") in foreign:
            yield opaque_point(_content(child), child)
        elif child.tag in _WRAPPERS:
            is_seen = child.tag != f"{_TEXT}span" or child.get(f"{_TEXT}style-name") not in unseen
            if is_seen:
                yield Piece("open", name=str(child.tag), source=InlineElement(child))
            yield from _items(child, unseen, foreign)
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


def _point(element: Element) -> Piece:
    if element.tag in _BLANKS:
        return Piece("point", source=element, stands_for=_BLANKS[str(element.tag)])
    content = _content(element)
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


def _clear(element: Element) -> None:
    element.text = None
    for child in list(element):
        element.remove(child)
