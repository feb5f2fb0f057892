"""XLIFF 1.2 and 2.0 (.xlf, .xliff, .sdlxliff): segments without a translation get one, and a state.

1.2: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html. 2.0: https://docs.oasis-open.org/xliff/xliff-core/v2.0/.
A translation is `translated`; one to review is `needs-review-translation` in 1.2, and `initial` in 2.0, which has no
other state for it. The document comes back as the same tree of XML. Its bytes may differ where XML has several ways to
write the same, such as quotation marks around an attribute.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO

from lxml import etree

from ...data.exchange import may_be_translated
from ...errors import DocumentError
from .safe_xml import parse_xml
from .string_unit import has_words, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation
from .xliff_inline import add_empty_copy, local_name, read_inline, write_inline

_UNTRANSLATED = {"new", "needs-translation", "initial"}  # states of a target that may be a copy of the source
_MAX_SEGMENTS = 1000  # of one unit; each is looked up among them all
_DONE = {"final", "signed-off", "reviewed"}


@dataclass(frozen=True, slots=True)
class XliffSegment:
    """A source, and `holder`, the element whose child is its target: a `<trans-unit>` (1.2) or a `<segment>` (2.0).

    `mid` is the number of its `<mrk>` where a `<trans-unit>` has several segments, else "".
    """

    source: etree._Element
    holder: etree._Element
    mid: str = ""

    @property
    def key(self) -> str:
        """Its unit."""
        unit = self.holder if _is_old(self.holder) else self.holder.getparent()
        return "" if unit is None else f"unit {unit.get('id', '')}"

    @property
    def existing(self) -> str | None:
        """The translation that is kept; None if there is none, or only a copy of the source that is marked as new."""
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

    def _target(self) -> etree._Element | None:
        target = self.holder.find("{*}target")
        if target is None or not self.mid:
            return target
        return next((mark for mark in target.iter("{*}mrk") if mark.get("mid") == self.mid), None)

    def _state(self) -> str | None:
        target = self.holder.find("{*}target")
        if _is_old(self.holder):
            return None if target is None else target.get("state")
        return self.holder.get("state", "initial")  # the default of the specification

    def _add_target(self) -> etree._Element:
        """A new target after the source; of several segments, with what is between them."""
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
        previous.tail, target.tail = self.holder.text, end  # indented as the first child is
        return target


def find_segments(root: etree._Element) -> Iterator[XliffSegment]:
    """The segments that may be translated: the nearest attribute `translate`, of the unit or around it, is not "no"."""
    for holder in root.iter("{*}trans-unit", "{*}segment"):
        source = holder.find("{*}source")
        if source is None or not may_be_translated(holder):
            continue
        segmented = holder.find("{*}seg-source")
        marks = [] if segmented is None else [m for m in segmented.iter("{*}mrk") if m.get("mtype") == "seg"]
        if len(marks) > _MAX_SEGMENTS:
            raise DocumentError(f"has a unit of {len(marks):,} segments; at most {_MAX_SEGMENTS:,} are read")
        if marks:
            yield from (XliffSegment(mark, holder, mark.get("mid", "")) for mark in marks)
        else:
            yield XliffSegment(source, holder)


def _is_old(holder: etree._Element) -> bool:
    return local_name(holder) == "trans-unit"


_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?(?:<\?xml[^>]*\?>\s*)?")


def read_xliff_document(data: bytes, options: DocumentOptions) -> Document:
    """The segments of an XLIFF file, those that are not to be translated left out.

    What is approved, reviewed, final or has a translation is kept. A target that is new and equal to its source counts
    as no translation. Inline elements are marks. Refuses what is not XLIFF 1.2 or 2.0.
    """
    segments = list(find_segments(_parse(data)))
    units = [_unit(segment) for segment in segments]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        if not any(translations):
            return data
        root = _parse(data)  # again: a document may be written several times
        remaining = iter(translations)
        for segment, unit in zip(find_segments(root), units, strict=True):
            translation = next(remaining) if unit else _copy(segment)
            if translation and not (unit and unit.translation is not None):
                segment.fill_in(translation)
        if options.target_language:
            _name_language(root, options.target_language)
        return _serialize(root, data)

    return Document(tuple(unit for unit in units if unit), write)


def _parse(data: bytes) -> etree._Element:
    root = parse_xml(data)
    if local_name(root) != "xliff" or root.get("version", "1.2")[:1] not in ("1", "2"):
        raise DocumentError(
            f"is not XLIFF 1.2 or 2.0: its root is <{local_name(root)} version={root.get('version')!r}>"
        )
    return root


def _unit(segment: XliffSegment) -> TranslationUnit | None:
    """None if there is nothing to translate."""
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


def _name_language(root: etree._Element, language: str) -> None:
    """Give a file without a target language one, which XLIFF 2.0 demands where there are targets."""
    for element, name in (
        [(root, "trgLang")]
        if root.get("version", "")[:1] == "2"
        else [(file, "target-language") for file in root.iter("{*}file")]
    ):
        if not element.get(name):
            element.set(name, language)


def _serialize(root: etree._Element, data: bytes) -> bytes:
    """The document with the declaration, line ends and last line end of `data`."""
    tree, file = root.getroottree(), BytesIO()
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    tree.write(file, encoding=tree.docinfo.encoding or "UTF-8", xml_declaration=is_wide)
    if is_wide:
        return file.getvalue()
    declaration = _DECLARATION.match(data)
    body = file.getvalue().replace(b"\n", b"\r\n" if b"\r\n" in data else b"\n")
    return (declaration.group() if declaration else b"") + body + data[len(data.rstrip()) :]
