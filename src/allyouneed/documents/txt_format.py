"""Plain text: every line is a unit, or every paragraph where lines were wrapped at a width (see `passages`)."""

from collections.abc import Sequence
from dataclasses import replace

from .encoded_text import decode_text, line_numbers
from .string_units import StringUnits
from .unit import Document, DocumentOptions, UnitTranslation


def read_txt_document(data: bytes, options: DocumentOptions) -> Document:
    """The passages of a text. Encoding, byte order mark, line ends, indents and blank lines are kept."""
    encoded = decode_text(data, options.encoding)
    string = StringUnits(encoded.text)
    lines = line_numbers(encoded.text, (passage.start for passage, _ in string.passages))

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        return encoded.replaced(string.replacements(translations))

    units = (replace(unit, key=f"line {line}") for unit, line in zip(string.units(""), lines, strict=True))
    return Document(tuple(units), write)
