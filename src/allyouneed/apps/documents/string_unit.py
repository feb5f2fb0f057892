"""Plain text: a string of a document (a message, a cell) is one unit, whose lines are its passages; of a text file
(.txt) every passage is one.
"""

import re
from collections.abc import Iterator, Sequence

from ...text.spans import iter_spans
from .encoded_text import Edit, decode_text, line_numbers
from .inline_markup import take_out_codes
from .passages import find_passages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation

_HAS_TEXTS = re.compile(r"\{[^{}]+(?:,|->)[^{}]*\{")  # {n, plural, one {# file} …}


class StringUnit:
    """A string without its inline tags, its indents, and what else is around its passages; `text` has a line for each.

    It is one unit, so that what must be in the whole translation (placeholders) is looked for in the whole.
    """

    def __init__(self, string: str, *, numbers: bool = False) -> None:
        self.string, self._numbers = string, numbers
        passages = find_passages(string, numbers=numbers)
        self._passages = [passage for passage in passages if has_words(passage.text, numbers=numbers)]
        self._marked = take_out_codes("\n".join(passage.text for passage in self._passages))

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate."""
        return has_words(self._marked.text, numbers=self._numbers)

    def unit(self, key: str, reasons: tuple[str, ...] = ()) -> TranslationUnit:
        """The unit. `reasons` are why to look at its translation."""
        return self._marked.unit(key, reasons)

    def translated(self, translation: UnitTranslation) -> str:
        """The string with its passages translated. Lines beyond their number join the last; missing ones are empty."""
        lines = self._marked.restored(translation).split("\n", len(self._passages) - 1)
        lines[-1] = lines[-1].replace("\n", " ")
        lines += [""] * (len(self._passages) - len(lines))
        parts, position = [], 0
        for passage, line in zip(self._passages, lines, strict=True):
            parts += [self.string[position : passage.start], passage.laid_out(line)]
            position = passage.end
        return "".join([*parts, self.string[position:]])


def has_words(text: str, *, numbers: bool = False) -> bool:
    """Whether a letter, or with `numbers` a digit, is in a text, apart from its placeholders."""
    return any(
        character.isalpha() or (numbers and character.isdigit())
        for part in _between_placeholders(text)
        for character in part
    )


def is_same_in_all_languages(text: str) -> bool:
    """Whether a text has no letter, apart from placeholders without words: a number, `%d: %s`."""
    return not has_words(text) and not any(_HAS_TEXTS.match(span.text) for span in iter_spans(text, ("placeholders",)))


def _between_placeholders(text: str) -> Iterator[str]:
    end = 0
    for span in iter_spans(text, ("placeholders",)):
        yield text[end : span.start]
        end = span.end
    yield text[end:]


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
            Edit(passage.start, passage.end, passage.laid_out(marked.restored(new)))
            for (passage, marked), new in zip(passages, translations, strict=True)
            if new
        )

    return Document(units, write)
