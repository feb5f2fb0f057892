"""What every format must hold to."""

from typing import Any

from allyouneed.apps.documents import Document, DocumentOptions, read_document
from allyouneed.apps.documents.document_translation import translate_document
from fake_translator import FakeTranslator


def read(data: bytes, kind: str, **options: Any) -> Document:
    return read_document(data, kind, DocumentOptions(**options), name=f"test.{kind}")


def translated(data: bytes, kind: str, model: FakeTranslator | None = None, **options: Any) -> bytes:
    """Translate the document with every word in capitals, or as `model` does."""
    return translate_document(read(data, kind, **options), model or FakeTranslator(str.upper)).data


def texts(data: bytes, kind: str) -> list[str]:
    return [unit.text for unit in read(data, kind).units]


def assert_identity(data: bytes, kind: str) -> None:
    """Check that nothing changes without translations, nor with an identity model's."""
    document = read(data, kind)
    assert document.write([None] * len(document.units)) == data
    assert translate_document(document, FakeTranslator()).data == data
