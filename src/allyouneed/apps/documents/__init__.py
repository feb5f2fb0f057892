"""Documents: read files with markup, or with translations next to their sources; translate their units; write them."""

from dataclasses import replace
from importlib import import_module
from pathlib import PurePath
from typing import cast

from ...errors import DocumentError
from .unit import Document, DocumentOptions, Mark, Reader, TranslationUnit, UnitTranslation, interleave

__all__ = [
    "FORMATS", "Document", "DocumentOptions", "Mark", "Reader", "TranslationUnit", "UnitTranslation", "document_format",
    "interleave", "read_document", "readable_endings",
]  # fmt: skip

# Formats → endings of their files. Each reader is `read_NAME_document`, in a file that is imported when it is needed.
FORMATS: dict[str, tuple[str, ...]] = {
    "txt": (".txt",),
    "srt": (".srt",),
    "vtt": (".vtt",),
    "po": (".po", ".pot"),
    "xliff": (".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "json": (".json", ".arb"),
    "jsonl": (".jsonl", ".ndjson"),
    "docx": (".docx", ".docm", ".dotx"),
    "md": (".md", ".markdown"),
    "odt": (".odt", ".ott"),
    "xlsx": (".xlsx", ".xlsm"),
    "html": (".html", ".htm", ".xhtml"),
}
_FILES = {
    "txt": "string_unit", "srt": "subtitles", "vtt": "subtitles", "csv": "table_column", "tsv": "table_column",
    "jsonl": "json_format",
}  # fmt: skip
_NUMBERS_ARE_COPIED = frozenset(["po", "xliff", "srt", "vtt"])


def document_format(name: str) -> str | None:
    """Return the format of a file by the ending of its name; None if no format has this ending."""
    ending = PurePath(name).suffix.lower()
    return next((form for form, endings in FORMATS.items() if ending in endings), None)


def readable_endings() -> list[str]:
    """List the file endings of all formats."""
    return [ending for endings in FORMATS.values() for ending in endings]


def read_document(
    data: bytes, kind: str, options: DocumentOptions | None = None, *, name: str = "the document"
) -> Document:
    """Read the document in `data`. Refuses, as a `DocumentError`, data that does not have the format `kind`.

    `kind` is one of `FORMATS`, and `name` the name of the file in messages. Subtitles, and formats with translations
    next to their sources, do not have the option `numbers`.
    """
    if kind not in FORMATS:
        raise DocumentError(f"{kind!r} is not a document format; known formats are {', '.join(FORMATS)}")
    if options and options.numbers and kind in _NUMBERS_ARE_COPIED:
        raise DocumentError(
            f"{name} is of the format {kind}, whose numbers are the same in every language; leave out --numbers"
        )
    reader = cast(
        Reader, getattr(import_module(f".{_FILES.get(kind, f'{kind}_format')}", __name__), f"read_{kind}_document")
    )
    options = options or DocumentOptions()
    try:
        document = reader(data, options)
    except DocumentError as error:
        raise DocumentError(f"{name} {error}").mended_by(*error.options) from error
    return replace(document, copies_numbers=kind in _NUMBERS_ARE_COPIED, target_language=options.target_language)
