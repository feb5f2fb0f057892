"""Plain text: every line is a unit, or every paragraph where lines were wrapped at a width (see `passages`)."""

from collections.abc import Sequence

from .encoded_text import decode_text, line_numbers
from .inline_markup import take_out_codes
from .passages import find_passages
from .string_unit import has_words
from .unit import Document, DocumentOptions, UnitTranslation


def read_txt_document(data: bytes, options: DocumentOptions) -> Document:
    """The passages of a text. Encoding, byte order mark, line ends, indents and blank lines are kept."""
    encoded = decode_text(data, options.encoding)
    passages = [
        (passage, marked)
        for passage in find_passages(encoded.text, numbers=options.numbers)
        if has_words((marked := take_out_codes(passage.text)).text, numbers=options.numbers)
    ]
    lines = line_numbers(encoded.text, (passage.start for passage, _ in passages))
    units = tuple(marked.unit(f"line {line}") for (_, marked), line in zip(passages, lines, strict=True))

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        return encoded.replaced(
            (passage.start, passage.end, passage.laid_out(marked.restored(new)))
            for (passage, marked), new in zip(passages, translations, strict=True)
            if new
        )

    return Document(units, write)
