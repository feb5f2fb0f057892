"""Word documents (.docx): the text of paragraphs, including those in tables, headers, footers, notes and text boxes.

Word splits text into runs, also for reasons that a reader cannot see; runs with the same format are joined. The most
frequent format in a paragraph is its base format; every other format becomes a tag. Parts without translated text stay
unchanged.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lxml import etree

from ...config.language_tags import is_foreign, primary_language, turned_direction
from ...data.archive import Archive
from ...data.safe_xml import Element, only_xml
from ...errors import DocumentError
from .office_document import OfficeParagraph, office_document, office_script
from .pieces import BLANK_PARTS, Piece, opaque_point
from .unit import Document, DocumentOptions

_PART = re.compile(r"(?:document|template)\.(?:\w+\.)?main\+xml|\.(?:header|footer|footnotes|endnotes)\+xml")
# Elements around runs, whose content is text of the paragraph.
_WRAPPERS = frozenset({"hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo", "fldSimple", "sdt"})
_NO_CONTENT = frozenset({"proofErr", "lastRenderedPageBreak", "softHyphen"})
_NO_FORMAT = frozenset({"lang", "noProof", "rsid"})  # invisible to a reader
# Properties of a paragraph have an order; these come before its direction.
_BEFORE_BIDI = frozenset({
    "pStyle", "keepNext", "keepLines", "pageBreakBefore", "framePr", "widowControl", "numPr", "suppressLineNumbers",
    "pBdr", "shd", "tabs", "suppressAutoHyphens", "kinsoku", "wordWrap", "overflowPunct", "topLinePunct", "autoSpaceDE",
    "autoSpaceDN",
})  # fmt: skip
_RANGE_END = re.compile(r"(?:Start|End)$")  # of a bookmark, a comment and similar
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


class RunFormat(NamedTuple):
    """The properties of a run (`w:rPr`), and a key of the properties for comparisons."""

    key: str
    element: Element | None


class Wrapper(NamedTuple):
    """An element around runs, and the descendant of it that contains them."""

    element: Element
    content: Element


class RunChild(NamedTuple):
    """An element in a run, such as a line break, with the format of its run."""

    format: RunFormat
    element: Element


Elements = list[Element | RunChild]  # the written form of a point, or of one side of a field


@dataclass(slots=True)
class OpenField:
    """The elements of a field whose instructions are being read. `depth` counts the fields nested in them."""

    elements: Elements
    depth: int = 0

    def taken(self) -> Elements:
        """Return the elements and forget them, because the field has been read."""
        elements, self.elements, self.depth = self.elements, [], 0
        return elements


def read_docx_document(data: bytes, options: DocumentOptions) -> Document:
    """Read a Word document. Refuses other files and archives, and an archive without a document.

    Comments, deleted text, formulas, charts, instructions of fields, and words marked as a language other than source
    and target are not translated. Translated words are marked as the target language.
    """
    archive = Archive(data)
    return office_document(
        archive, _text_parts(archive), partial(_paragraphs, options=options), partial(_build, options=options),
        label=_label, collapse=False, options=options, name_language=partial(_name_language, options=options),
        styles="word/styles.xml",
    )  # fmt: skip


def _text_parts(archive: Archive) -> list[str]:
    """Name the parts with text, the main part first."""
    types = archive.read_xml("[Content_Types].xml")
    names = [
        (not part.group().endswith("main+xml"), str(one.get("PartName", "")).lstrip("/"))
        for one in types
        if (part := _PART.search(str(one.get("ContentType", ""))))
    ]
    if not any(not is_other for is_other, _ in names):
        raise DocumentError("has no Word document in it")
    return [name for _, name in sorted(set(names))]  # a part that is listed twice is read once


def _label(part: str) -> str:
    name = part.rpartition("/")[2].removesuffix(".xml")
    return "" if name.startswith("document") else f"{name}, "


def _name_language(root: Element, options: DocumentOptions) -> bool:
    """Change language marks to the target language, in the group of scripts to which Word assigns it."""
    namespace, languages_read = _namespace(root), _own_languages(root, options)
    script = office_script(options.target_language)
    marks = [
        mark
        for mark in root.iter(f"{{{namespace}}}lang")
        if not (languages_read and is_foreign(str(mark.get(f"{{{namespace}}}val", "")), languages_read))
    ]
    for mark in marks:
        mark.set(f"{{{namespace}}}val", options.target_language)
        if script:
            mark.set(f"{{{namespace}}}{'eastAsia' if script == 'asian' else 'bidi'}", options.target_language)
    return bool(marks)


def _own_languages(root: Element, options: DocumentOptions) -> set[str]:
    """Return the languages whose texts are translated: those of the options, and the language of most runs.

    Programs mark words by the keyboard with which they were typed, so a mark with one of these languages says little.
    If the source language is unknown, all texts are translated.
    """
    if not options.source_language:
        return set()
    namespace = _namespace(root)
    sizes = Counter[str]()  # unmarked words are in the language of the document
    for text in root.iter(f"{{{namespace}}}t"):
        run = text.getparent()
        mark = None if run is None else run.find(f"{{{namespace}}}rPr/{{{namespace}}}lang")
        language = "" if mark is None else str(mark.get(f"{{{namespace}}}val", ""))
        sizes[primary_language(language)] += len(text.text or "")
    most = [language for language, _ in sizes.most_common(1)]
    return {primary_language(one) for one in (options.source_language, options.target_language)} | {*most}


def _paragraphs(root: Element, options: DocumentOptions) -> Iterator[OfficeParagraph]:
    languages_read = _own_languages(root, options)
    for element in root.iter(f"{{{_namespace(root)}}}p"):
        field = OpenField([])
        read = list(_items(element, _namespace(root), field))
        items = [one for item in read for one in _marked(item, languages_read)]
        if field.elements:  # the field continues in the next paragraph
            items.append(Piece("boundary", source=field.taken()))
        base = _most_frequent(items)
        foreign = [(item.text, language) for item in read if (language := _foreign_language(item, languages_read))]
        yield OfficeParagraph(element, list(_formatted(items, base)), base, foreign)


def _namespace(root: Element) -> str:
    return etree.QName(root).namespace or ""


def _name(element: Element, namespace: str) -> str:
    """Return the local name of a WordprocessingML element; "" for comments and elements of other namespaces."""
    if not isinstance(element.tag, str) or (name := etree.QName(element)).namespace != namespace:
        return ""
    return name.localname


def _items(parent: Element, namespace: str, field: OpenField) -> Iterator[Piece]:
    """Yield the content of a paragraph. The source of a text is its `RunFormat`."""
    for child in parent:
        name = _name(child, namespace)
        if name == "r":
            yield from _run_items(child, namespace, field)
        elif not isinstance(child.tag, str) or name.endswith("Pr") or name in _NO_CONTENT:
            continue
        elif field.elements:
            field.elements.append(child)
        elif name in _WRAPPERS:
            content = child.find(f"{{{namespace}}}sdtContent") if name == "sdt" else child
            if content is not None:
                yield Piece("open", name=name, source=Wrapper(child, content))
                yield from _items(content, namespace, field)
                yield Piece("close", name=name, source=Wrapper(child, content))
        else:
            kind, is_end = _RANGE_END.subn("", name)
            yield Piece("point", source=[child], range=f"{kind} {child.get(f'{{{namespace}}}id')}" if is_end else "")


def _language_mark(item: Piece) -> Element | None:
    form = item.source.element if item.kind == "text" else None
    return None if form is None else form.find(f"{{{_namespace(form)}}}lang")


def _foreign_language(item: Piece, languages_read: set[str]) -> str:
    """Return the language that a text is marked with, or "" if that language is one of `languages_read`."""
    mark = _language_mark(item)
    language = "" if mark is None else str(mark.get(f"{{{_namespace(mark)}}}val", ""))
    return language if languages_read and is_foreign(language, languages_read) else ""


def _marked(item: Piece, languages_read: set[str]) -> Iterator[Piece]:
    """Replace the text of a run with a point (untranslated content) if its language is not in `languages_read`."""
    mark = _language_mark(item)
    if mark is None or not _foreign_language(item, languages_read):
        yield item
        return
    for part in BLANK_PARTS.findall(item.text):
        text = mark.makeelement(f"{{{_namespace(mark)}}}t")
        text.text = part
        text.set(_SPACE, "preserve")
        yield opaque_point(part, [RunChild(item.source, text)]) if part.strip() else item._replace(text=part)


def _run_items(run: Element, namespace: str, field: OpenField) -> Iterator[Piece]:
    form = _read_format(run.find(f"{{{namespace}}}rPr"), namespace)
    for child in run:
        name = _name(child, namespace)
        if name == "rPr" or name in _NO_CONTENT or not isinstance(child.tag, str):
            continue
        kind = child.get(f"{{{namespace}}}fldCharType", "") if name == "fldChar" else ""
        single: Elements = [RunChild(form, child)]
        if kind == "begin" or field.elements:
            field.elements += single
            field.depth += (kind == "begin") - (kind == "end")
            if field.depth == 0:
                yield Piece("point", source=field.taken())
            elif kind == "separate" and field.depth == 1:
                yield Piece("open", name="field", source=field.taken())
        elif kind == "end":
            yield Piece("close", name="field", source=single)
        elif name == "t":
            yield Piece("text", child.text or "", source=form)
        elif name == "noBreakHyphen":
            yield Piece("text", "\N{NON-BREAKING HYPHEN}", source=form)
        elif name in ("tab", "ptab") or child.get(f"{{{namespace}}}type") in ("page", "column"):
            yield Piece("boundary", source=single)
        else:
            yield Piece("point", source=single, stands_for="break" if name in ("br", "cr") else "")


def _read_format(element: Element | None, namespace: str) -> RunFormat:
    properties = [
        (str(one.tag), *sorted((str(name), str(value)) for name, value in one.items()))
        for one in (element if element is not None else ())
        if _name(one, namespace) not in _NO_FORMAT
    ]
    return RunFormat(repr(properties), element)


def _most_frequent(items: Sequence[Piece]) -> RunFormat | None:
    """Return the format of most characters."""
    sizes, forms = Counter[str](), dict[str, RunFormat]()
    for item in items:
        if item.kind == "text":
            sizes[item.source.key] += len(item.text)
            forms.setdefault(item.source.key, item.source)
    return forms[sizes.most_common(1)[0][0]] if sizes else None


def _formatted(items: Sequence[Piece], base: RunFormat | None) -> Iterator[Piece]:
    """Put tags around neighbouring texts with a format other than the base."""
    current: Piece | None = None  # the open tag of a format
    waiting: list[Piece] = []  # points after its text; they are inside if more text with this format follows
    for item in items:
        if current and item.kind == "point":
            waiting.append(item)
            continue
        same = current is not None and item.kind == "text" and item.source.key == current.source.key
        if current and not same:
            yield current._replace(kind="close")
            current = None
        yield from waiting
        waiting = []
        if item.kind == "text" and current is None and base is not None and item.source.key != base.key:
            current = Piece("open", name="format", source=item.source)
            yield current
        yield item
    if current:
        yield current._replace(kind="close")
    yield from waiting


def _build(paragraph: OfficeParagraph, pieces: Sequence[Piece], options: DocumentOptions) -> None:
    """Replace the content of a paragraph, and set its direction to that of the target language."""
    element, namespace = paragraph.element, _namespace(paragraph.element)
    parts = [element]
    formats: list[RunFormat | None] = [paragraph.base]
    _clear(element, namespace)
    for piece in pieces:
        source = piece.source
        if piece.kind == "text":
            if piece.text:
                parts[-1].append(_text_run(element, namespace, formats[-1], piece.text))
        elif isinstance(source, RunFormat):
            if piece.kind == "close" or (piece.kind == "boundary" and formats[-1] is source):
                formats.pop()
            else:
                formats.append(source)
        elif isinstance(source, Wrapper):
            if parts[-1] is source.content:
                parts.pop()
            else:
                _clear(source.content, namespace)
                parts[-1].append(source.element)
                parts.append(source.content)
        else:
            for one in source:
                child = _run_with(element, namespace, one) if isinstance(one, RunChild) else one
                child.tail = None
                parts[-1].append(child)
    _turn(element, namespace, turned_direction(options.source_language, options.target_language))


def _turn(element: Element, namespace: str, direction: str) -> None:
    """Set the direction of a paragraph. Runs only lose theirs, because Word changes the fonts of turned runs."""
    if not direction:
        return
    for mark in list(element.iter(f"{{{namespace}}}bidi", f"{{{namespace}}}rtl")):
        parent = mark.getparent()
        if parent is not None:
            parent.remove(mark)
    properties = element.find(f"{{{namespace}}}pPr")
    if properties is None:
        properties = element.makeelement(f"{{{namespace}}}pPr")
        element.insert(0, properties)
    place = next((i for i, one in enumerate(properties) if _name(one, namespace) not in _BEFORE_BIDI), len(properties))
    bidi = element.makeelement(f"{{{namespace}}}bidi")
    if direction == "ltr":
        bidi.set(f"{{{namespace}}}val", "0")  # whatever its style says
    properties.insert(place, bidi)


def _clear(element: Element, namespace: str) -> None:
    """Remove all children except the properties."""
    for child in list(element):
        if not _name(child, namespace).endswith("Pr"):
            element.remove(child)


def _run_with(parent: Element, namespace: str, single: RunChild) -> Element:
    run = parent.makeelement(f"{{{namespace}}}r")
    if single.format.element is not None:
        run.append(deepcopy(single.format.element))
    run.append(single.element)
    return run


def _text_run(parent: Element, namespace: str, form: RunFormat | None, content: str) -> Element:
    text = parent.makeelement(f"{{{namespace}}}t")
    text.text = only_xml(content)
    text.set(_SPACE, "preserve")
    return _run_with(parent, namespace, RunChild(form or RunFormat("", None), text))
