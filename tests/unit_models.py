"""Stand-ins for a model in tests of documents: what they make of every unit."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from allyouneed.apps.documents import Document, DocumentOptions, UnitTranslation, read_document


def identity(document: Document) -> bytes:
    """Write the document with every unit translated as it is, its tags where they were."""
    return document.write(
        [UnitTranslation(unit.text, unit.marks) if unit.translation is None else None for unit in document.units]
    )


def untouched(document: Document) -> bytes:
    """Write the document with no unit translated."""
    return document.write([None] * len(document.units))


def texts(document: Document) -> list[str]:
    """List the texts of the units that have no translation."""
    return [unit.text for unit in document.units if unit.translation is None]


def answer(
    document: Document, answers: Mapping[str, str] | Callable[[str], str], reasons: Mapping[str, str] | None = None
) -> bytes:
    """Write the document with the answer to each text; tags stay at the ends, and a unit may get a reason."""
    look = answers if callable(answers) else answers.__getitem__
    translations: list[UnitTranslation | None] = []
    for unit in document.units:
        if unit.translation is not None:
            translations.append(None)
            continue
        text = look(unit.text)
        marks = tuple(mark._replace(at=0 if mark.kind == "open" else len(text)) for mark in unit.marks)
        reason = (reasons or {}).get(unit.text)
        translations.append(UnitTranslation(text, marks, (reason,) if reason else ()))
    return document.write(translations)


def read(kind: str, content: str | bytes, **options: object) -> Document:
    """Read a document, UTF-8 unless bytes say otherwise."""
    data = content.encode() if isinstance(content, str) else content
    return read_document(data, kind, replace(DocumentOptions(), **options), name="file")  # type: ignore[arg-type]
