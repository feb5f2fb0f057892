"""Documents that are XML parts in an archive: what Word's and OpenDocument's have in common."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from lxml import etree

from .archive import Archive
from .inline_runs import InlineRun, translated_pieces
from .pieces import Piece
from .unit import Document, UnitTranslation


class OfficeParagraph(Protocol):
    """A paragraph, its content as pieces, and its units."""

    @property
    def pieces(self) -> list[Piece]: ...

    @property
    def runs(self) -> list[InlineRun]: ...


_Paragraph = TypeVar("_Paragraph", bound=OfficeParagraph)


def office_document(
    archive: Archive,
    names: Sequence[str],
    paragraphs_in: Callable[[str], tuple[etree._Element, list[_Paragraph]]],
    build: Callable[[_Paragraph, Sequence[Piece]], None],
    serialize: Callable[[etree._Element], bytes],
) -> Document:
    """The document whose text is in the parts `names`; parts in which nothing is translated keep their bytes.

    `paragraphs_in` parses a part, `build` replaces the content of a paragraph, and `serialize` writes a part that
    changed.
    """
    units = [run.unit for name in names for paragraph in paragraphs_in(name)[1] for run in paragraph.runs]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        remaining = iter(translations)
        parts: dict[str, bytes] = {}
        for name in names:
            root, paragraphs = paragraphs_in(name)
            changed = False
            for paragraph in paragraphs:
                pieces = translated_pieces(paragraph.pieces, paragraph.runs, remaining)
                if pieces is not None:
                    build(paragraph, pieces)
                    changed = True
            if changed:
                parts[name] = serialize(root)
        return archive.replaced(parts)

    return Document(tuple(units), write)
