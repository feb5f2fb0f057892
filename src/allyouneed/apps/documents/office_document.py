"""Documents that consist of XML parts in a zip archive, by Word or OpenDocument: their paragraphs."""

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple, cast

from ...config.language_tags import is_right_to_left, primary_language
from ...data.archive import Archive
from ...data.safe_xml import Element
from .inline_runs import InlineRun, inline_runs, translated_pieces
from .pieces import Piece, is_translatable
from .unit import Document, DocumentOptions, LeftOutText, UnitTranslation

_COMPLEX = frozenset(["bn", "bo", "gu", "hi", "km", "kn", "lo", "ml", "mr", "my", "ne", "pa", "si", "ta", "te", "th"])


class OfficeParagraph(NamedTuple):
    """A paragraph, its content as pieces, and everything else that its format needs to write it.

    `foreign` maps texts that are marked as another language, and so stay unchanged, to that language.
    """

    element: Element
    pieces: list[Piece]
    base: Any = None
    foreign: Sequence[tuple[str, str]] = ()


def office_document(
    archive: Archive,
    names: Sequence[str],
    read: Callable[[Element], Iterable[OfficeParagraph]],
    build: Callable[[OfficeParagraph, Sequence[Piece]], None],
    *,
    label: Callable[[str], str],
    collapse: bool,
    options: DocumentOptions,
    name_language: Callable[[Element], bool],
    styles: str,
) -> Document:
    """Make a document of the text in the parts `names`. Parts without translated text keep their bytes.

    `read` yields the paragraphs of a part; their keys begin with the part's `label`. `build` replaces the content of a
    paragraph. `name_language` marks a part as being in the target language, and returns True if the part has a place
    for such a mark; it is called for translated parts, and for `styles`.
    """

    def read_part(name: str) -> tuple[Element, list[tuple[OfficeParagraph, list[InlineRun]]]]:
        root = archive.read_xml(name)
        keys = (f"{label(name)}paragraph {number}" for number in count(1))
        paragraphs = zip(list(read(root)), keys, strict=False)
        return root, [
            (paragraph, list(inline_runs(paragraph.pieces, collapse=collapse, key=key, numbers=options.numbers)))
            for paragraph, key in paragraphs
        ]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        remaining = iter(translations)
        parts: dict[str, bytes] = {}
        for name in names:
            root, paragraphs = read_part(name)
            changed = False
            for paragraph, runs in paragraphs:
                pieces = translated_pieces(paragraph.pieces, runs, remaining)
                if pieces is not None:
                    build(paragraph, pieces)
                    changed = True
            if changed:
                if options.target_language:
                    name_language(root)
                parts[name] = _serialized(root)
        if parts and options.target_language and styles in archive.names - parts.keys():
            root = archive.read_xml(styles)
            if name_language(root):
                parts[styles] = _serialized(root)
        return archive.replaced(parts)

    paragraphs = [
        (f"{label(name)}paragraph {number}", *one) for name in names for number, one in enumerate(read_part(name)[1], 1)
    ]
    # A mark may be wrong, because programs set it by the keyboard.
    left_out = (
        LeftOutText(key, text, f"is marked as text in {language}")
        for key, paragraph, _ in paragraphs
        for text, language in paragraph.foreign
        if is_translatable(text, numbers=options.numbers)
    )
    return Document(tuple(run.unit for *_, runs in paragraphs for run in runs), write, left_out=tuple(left_out))


def office_script(language: str) -> str:
    """Return the group of scripts to which office programs assign a language: "asian", "complex" or ""."""
    if is_right_to_left(language) or primary_language(language) in _COMPLEX:
        return "complex"
    return "asian" if primary_language(language) in ("ja", "ko", "zh") else ""


def _serialized(root: Element) -> bytes:
    tree, part = root.getroottree(), io.BytesIO()
    standalone = cast(bool, tree.docinfo.standalone)  # None if it is not declared
    tree.write(part, encoding="UTF-8", xml_declaration=True, standalone=standalone)
    return part.getvalue()
