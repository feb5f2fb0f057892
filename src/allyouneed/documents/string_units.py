"""A string of a document (a message, a cell, a whole text file) as units: its passages, without their inline tags."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from .inline_markup import PLACEHOLDER, MarkedText, take_out_tags
from .passages import Passage, find_passages
from .unit import TranslationUnit, UnitTranslation


class StringUnits:
    """The units of one string, which has none if there is no word in it."""

    def __init__(self, string: str) -> None:
        self.string = string
        self.passages: list[tuple[Passage, MarkedText]] = []
        for passage in find_passages(string):
            marked = take_out_tags(passage.text)
            if has_words(marked.text):
                self.passages.append((passage, marked))

    def __len__(self) -> int:
        return len(self.passages)

    def units(self, key: str, reasons: tuple[str, ...] = ()) -> Iterator[TranslationUnit]:
        """The units, all with the same key, and the same reasons to look at their translations."""
        for _, marked in self.passages:
            yield TranslationUnit(text=marked.text, marks=marked.marks, key=key, reasons=reasons)

    def replacements(self, translations: Sequence[UnitTranslation | None]) -> Iterator[tuple[int, int, str]]:
        """Which characters of the string are replaced by what; a unit without a translation stays."""
        for (passage, marked), translation in zip(self.passages, translations, strict=True):
            if translation:
                text = passage.laid_out(marked.restored(translation.text, translation.marks))
                yield passage.start, passage.end, text

    def translated(self, translations: Sequence[UnitTranslation | None]) -> str | None:
        """The whole string with all units translated, or None if one of them is not."""
        if None in translations:
            return None
        parts, position = [], 0
        for start, end, text in self.replacements(translations):
            parts += [self.string[position:start], text]
            position = end
        return "".join([*parts, self.string[position:]])


def has_words(text: str) -> bool:
    """Whether a letter is in a text, apart from its placeholders."""
    return any(character.isalpha() for character in PLACEHOLDER.sub("", text))


def by_string(
    sizes: Iterable[int], translations: Sequence[UnitTranslation | None]
) -> Iterator[list[UnitTranslation | None]]:
    """The translations of the units of each string, from those of all units; `sizes` are how many each has."""
    remaining = iter(translations)
    for size in sizes:
        yield list(islice(remaining, size))
