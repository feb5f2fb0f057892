"""XLIFF 1.2 and 2.0 (.xlf, .xliff, .sdlxliff): segments without a translation get one, and a state.

1.2: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html. 2.0: https://docs.oasis-open.org/xliff/xliff-core/v2.0/.
A translation is `translated`; one to review is `needs-review-translation` in 1.2, and `initial` in 2.0, which has no
other state for it. The document comes back as the same tree of XML. Its bytes may differ where XML has several ways to
write the same, such as quotation marks around an attribute.
"""

import re
from collections.abc import Sequence
from io import BytesIO

from lxml import etree

from ...errors import DocumentError
from .safe_xml import parse_xml
from .string_unit import has_words, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation
from .xliff_inline import local_name, read_inline
from .xliff_segments import XliffSegment, find_segments

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
