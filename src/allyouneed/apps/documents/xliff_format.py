"""XLIFF 1.2 and 2.0 (.xlf, .xliff, .sdlxliff): give segments without a translation a translation and a state.

1.2: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html. 2.0: https://docs.oasis-open.org/xliff/xliff-core/v2.0/.
A translation gets the state `translated`. A translation to review gets `needs-review-translation` in 1.2, and `initial`
in 2.0, which has no better state. The document comes back as the same XML tree. Its bytes may differ where XML has
several ways to write the same thing, such as quotation marks around attributes.

Inline elements are marks of the text. `<g>`, `<pc>` and `<mrk>` contain text and are pairs of marks, and so are a
`<bpt>` with its `<ept>`, a `<bx>` with its `<ex>`, and an `<sc>` with its `<ec>`. All other elements, and elements that
must not be translated or are marked as another language (`xml:lang`), are points, whatever they contain. Tags written
in the text itself, `&lt;b&gt;`, are also marks, as in other strings with tags. A code for a line break is a blank in
the text.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO

from lxml import etree

from ...config.language_tags import is_foreign, primary_language
from ...data.exchange import may_be_translated
from ...data.safe_xml import Element, append_text, parse_xml
from ...errors import DocumentError
from .inline_markup import LINE_BREAKS, CharacterReferences, MarkedText, marked_text, read_codes, tag_name
from .pieces import Piece, StandsFor
from .string_unit import has_words, is_same_in_all_languages
from .unit import Document, DocumentOptions, Mark, TranslationUnit, UnitTranslation

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_AROUND = {"g", "pc", "mrk"}
_OPENING = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


def write_inline(parent: Element, inline: MarkedText, translation: UnitTranslation) -> None:
    """Replace the content of an element with a translation of `inline`, including its inline elements and tags."""
    for child in list(parent):
        parent.remove(child)
    parent.text = None
    stack = [parent]
    new = inline.rewritten(translation)
    for part in new.parts(new.text, new.marks):
        source = part if isinstance(part, str) else new.sources[part.tag, part.kind]
        if source is None:  # the end of an element around text
            stack.pop()
        elif isinstance(source, str):
            append_text(stack[-1], source)
        elif local_name(source) in _AROUND and isinstance(part, Mark) and part.kind == "open":
            stack.append(add_empty_copy(stack[-1], source))
        else:
            stack[-1].append(_alone(source))


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace; "" for a comment or an instruction."""
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def add_empty_copy(parent: Element, element: Element) -> Element:
    """Append a child to `parent`, with the name and attributes of `element`."""
    copy = etree.SubElement(parent, element.tag)
    for name, value in element.items():
        copy.set(name, value)
    return copy


def read_inline(element: Element) -> MarkedText:
    """Read the text of a `<source>` or `<target>`. Inline elements and tags written as text become marks.

    For an element that encloses text, the written form of its end is None.
    """
    references = CharacterReferences()
    return marked_text(_parts(element, references), references, lambda codes: dict(_pairs(codes)))


def _is_line_break(element: Element) -> bool:
    """Return True if the type of an element, or the code that it stands for, is an HTML line break."""
    kind = (element.get("ctype") or element.get("subType") or "").lower()
    code = element.get("equiv-text") or element.get("disp") or ("" if local_name(element) in _AROUND else element.text)
    is_break = kind in ("lb", "xlf:lb") or kind.removeprefix("x-").removeprefix("html-") in LINE_BREAKS
    return is_break or tag_name(code or "")[1] in LINE_BREAKS


def _parts(element: Element, references: CharacterReferences) -> Iterator[Piece]:
    yield from _text_parts(element.text or "", references)
    for child in element:
        name = local_name(child)
        stands_for: StandsFor = "break" if _is_line_break(child) else ""
        if name in _AROUND and not _is_protected(child):
            key = f"{name} {id(child)}"
            yield Piece("open", name=key, source=child, stands_for=stands_for)
            yield from _parts(child, references)
            yield Piece("close", name=key)
        elif name in _OPENING:
            key = f"{name} {child.get('rid') or child.get('id') or ''}"
            yield Piece("open", name=key, source=child, stands_for=stands_for)
        elif name in _CLOSING:
            key = f"{_CLOSING[name]} {child.get('startRef') or child.get('rid') or child.get('id') or ''}"
            yield Piece("close", name=key, source=child, stands_for=stands_for)
        else:
            yield Piece("point", source=child, stands_for=stands_for)
        yield from _text_parts(child.tail or "", references)


def _text_parts(text: str, references: CharacterReferences) -> Iterator[Piece]:
    """Yield text, and the tags that are written in it."""
    for piece in read_codes(text, references):
        yield piece if piece.kind == "text" else piece._replace(name=f"tag {piece.name}")


def _is_protected(element: Element) -> bool:
    is_marked_no = element.get("translate") == "no" or element.get("mtype") == "protected"
    is_in_source = any(local_name(one) in ("source", "seg-source") for one in element.iterancestors())
    return is_marked_no or (_LANGUAGE in element.attrib and is_in_source and _is_foreign(element))


def _is_foreign(element: Element, source_language: str = "") -> bool:
    """Return True if an element is marked as a language other than that of its file's sources."""
    named = [one.get("srcLang") or one.get("source-language") or "" for one in element.iterancestors()]
    own = {primary_language(language) for language in (*named, source_language)} - {""}
    marks = (one.get(_LANGUAGE) for one in (element, *element.iterancestors()) if local_name(one) != "xliff")
    return bool(own) and is_foreign(next(filter(None, marks), ""), own)


def _pairs(codes: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Pair the codes that close each other. The result has both directions.

    Codes that cross an element, or lack an end, get no pair.
    """
    opened: list[int] = []
    for number, code in enumerate(codes):
        if code.kind == "open":
            opened.append(number)
        elif code.kind == "close":
            depth = len(opened) - 1
            # Codes may stay open; an element around text is closed by its own end.
            while (
                depth >= 0
                and codes[opened[depth]].name != code.name
                and (code.source is None or codes[opened[depth]].name.partition(" ")[0] not in _AROUND)
            ):
                depth -= 1
            if depth >= 0 and codes[opened[depth]].name == code.name:
                yield opened[depth], number
                yield number, opened[depth]
                del opened[depth:]


def _alone(element: Element) -> Element:
    copy = deepcopy(element)
    copy.tail = None
    return copy


_UNTRANSLATED = {"new", "needs-translation", "initial"}  # states of a target that may be a copy of the source
_MAX_SEGMENTS = 1000  # in a unit; each one is looked up among all of them
_DONE = {"final", "signed-off", "reviewed"}


@dataclass(frozen=True, slots=True)
class XliffSegment:
    """A source, and `holder`, the element whose child is its target: a `<trans-unit>` (1.2) or a `<segment>` (2.0).

    `mid` identifies its `<mrk>` if a `<trans-unit>` has several segments; otherwise it is "".
    """

    source: Element
    holder: Element
    mid: str = ""

    @property
    def key(self) -> str:
        """The name of the unit."""
        unit = self.holder if _is_old(self.holder) else self.holder.getparent()
        return "" if unit is None else f"unit {unit.get('id', '')}"

    @property
    def existing(self) -> str | None:
        """The translation to keep; None if there is none, or only a copy of the source that is marked as new."""
        target, state = self._target(), self._state()
        text = "" if target is None else read_inline(target).text
        if self.holder.get("approved") == "yes" or state in _DONE:
            return text
        is_copy = state in _UNTRANSLATED and text.strip() == read_inline(self.source).text.strip()
        return None if is_copy or not text.strip() else text

    def fill_in(self, translation: UnitTranslation) -> None:
        """Write the target and its state."""
        whole = self.holder.find("{*}target")
        if whole is None:
            whole = self._add_target()
        target = self._target()
        if target is None:  # the unit has more segments than its target
            target = add_empty_copy(whole, self.source)
        write_inline(target, read_inline(self.source), translation)
        if not _is_old(self.holder):
            self.holder.set("state", "initial" if translation.reasons else "translated")
        elif translation.reasons or not (self.mid and whole.get("state") == "needs-review-translation"):
            whole.set("state", "needs-review-translation" if translation.reasons else "translated")
            whole.set("state-qualifier", "mt-suggestion")

    def _target(self) -> Element | None:
        target = self.holder.find("{*}target")
        if target is None or not self.mid:
            return target
        return next((mark for mark in target.iter("{*}mrk") if mark.get("mid") == self.mid), None)

    def _state(self) -> str | None:
        target = self.holder.find("{*}target")
        if _is_old(self.holder):
            return None if target is None else target.get("state")
        return self.holder.get("state", "initial")  # the default of the specification

    def _add_target(self) -> Element:
        """Add a target after the source. If there are several segments, the text between them is copied."""
        previous = self.holder.find("{*}seg-source")
        previous = self.holder.find("{*}source") if previous is None else previous
        assert previous is not None
        target = deepcopy(previous) if self.mid else etree.Element("target")
        namespace = etree.QName(previous).namespace
        target.tag = f"{{{namespace}}}target" if namespace else "target"
        for mark in target.iter("{*}mrk"):
            if mark.get("mtype") == "seg":
                for child in list(mark):
                    mark.remove(child)
                mark.text = None
        end = previous.tail
        previous.addnext(target)
        previous.tail, target.tail = self.holder.text, end  # indented like the first child
        return target


def find_segments(root: Element, source_language: str = "") -> Iterator[XliffSegment]:
    """Find the segments to translate. The nearest `translate` attribute on or around a segment must not be "no".

    Segments whose source is marked as a language other than the file's, or than `source_language`, are left out.
    """
    for holder in root.iter("{*}trans-unit", "{*}segment"):
        source = holder.find("{*}source")
        if source is None or not may_be_translated(holder) or _is_foreign(source, source_language):
            continue
        segmented = holder.find("{*}seg-source")
        marks = [] if segmented is None else [m for m in segmented.iter("{*}mrk") if m.get("mtype") == "seg"]
        if len(marks) > _MAX_SEGMENTS:
            raise DocumentError(f"has a unit of {len(marks):,} segments; at most {_MAX_SEGMENTS:,} are read")
        if marks:
            yield from (XliffSegment(mark, holder, mark.get("mid", "")) for mark in marks)
        else:
            yield XliffSegment(source, holder)


def _is_old(holder: Element) -> bool:
    return local_name(holder) == "trans-unit"


_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?(?:<\?xml[^>]*\?>\s*)?")


def read_xliff_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the segments of an XLIFF file, except those that must not be translated.

    A segment that is approved, reviewed or final, or that has a translation, is kept. A new target that equals its
    source counts as no translation. Inline elements are marks. Refuses files other than XLIFF 1.2 or 2.0.
    """
    segments = list(find_segments(_parse(data), options.source_language))
    units = [_unit(segment) for segment in segments]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        if not any(translations):
            return data
        root = _parse(data)  # parsed again, because a document may be written several times
        remaining = iter(translations)
        for segment, unit in zip(find_segments(root, options.source_language), units, strict=True):
            translation = next(remaining) if unit else _copy(segment)
            if translation and not (unit and unit.translation is not None):
                segment.fill_in(translation)
                _mark_target(segment.holder, options.target_language)
        if options.target_language:
            _name_language(root, options.target_language)
        return _serialize(root, data)

    return Document(tuple(unit for unit in units if unit), write)


def _parse(data: bytes) -> Element:
    root = parse_xml(data)
    if local_name(root) != "xliff" or root.get("version", "1.2")[:1] not in ("1", "2"):
        raise DocumentError(
            f"is not XLIFF 1.2 or 2.0: its root is <{local_name(root)} version={root.get('version')!r}>"
        )
    return root


def _unit(segment: XliffSegment) -> TranslationUnit | None:
    """Make the unit; None if there is nothing to translate."""
    inline, existing = read_inline(segment.source), segment.existing
    if existing is None and not has_words(inline.text):
        return None
    if existing is None:
        return inline.unit(segment.key)
    return TranslationUnit(text=inline.text, key=segment.key, translation=existing)


def _copy(segment: XliffSegment) -> UnitTranslation | None:
    inline = read_inline(segment.source)
    if not is_same_in_all_languages(inline.text):
        return None
    return UnitTranslation(inline.text, inline.marks)


def _mark_target(holder: Element, language: str) -> None:
    """Mark a target with the language of the translation, if it is marked with the language of its source."""
    for target in holder.iterfind("{*}target"):
        for element in (target, *target.iter("{*}mrk")) if language else ():
            if _LANGUAGE in element.attrib:
                element.set(_LANGUAGE, language)


def _name_language(root: Element, language: str) -> None:
    """Add a target language to a file that has none, because XLIFF 2.0 requires it if there are targets."""
    for element, name in (
        [(root, "trgLang")]
        if root.get("version", "")[:1] == "2"
        else [(file, "target-language") for file in root.iter("{*}file")]
    ):
        if not element.get(name):
            element.set(name, language)


def _serialize(root: Element, data: bytes) -> bytes:
    """Write the document with the declaration, the line ends and the final line end of `data`."""
    tree, file = root.getroottree(), BytesIO()
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    tree.write(file, encoding=tree.docinfo.encoding or "UTF-8", xml_declaration=is_wide)
    if is_wide:
        return file.getvalue()
    declaration = _DECLARATION.match(data)
    body = file.getvalue().replace(b"\n", b"\r\n" if b"\r\n" in data else b"\n")
    return (declaration.group() if declaration else b"") + body + data[len(data.rstrip()) :]
