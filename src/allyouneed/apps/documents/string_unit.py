"""A string of a document (a message, a cell) as one unit, whose lines are the string's passages."""

from .inline_markup import PLACEHOLDER, take_out_tags
from .passages import find_passages
from .unit import TranslationUnit, UnitTranslation

_DEPTH = 6  # of braces in braces


class StringUnit:
    """A string without its inline tags, its indents, and what else is around its passages; `text` has a line for each.

    It is one unit, so that what must be in the whole translation (placeholders) is looked for in the whole.
    """

    def __init__(self, string: str, *, numbers: bool = False) -> None:
        self.string, self._numbers = string, numbers
        passages = find_passages(string, numbers=numbers)
        self._passages = [passage for passage in passages if has_words(passage.text, numbers=numbers)]
        self._marked = take_out_tags("\n".join(passage.text for passage in self._passages))

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate."""
        return has_words(self._marked.text, numbers=self._numbers)

    def unit(self, key: str, reasons: tuple[str, ...] = ()) -> TranslationUnit:
        """The unit. `reasons` are why to look at its translation."""
        return TranslationUnit(text=self._marked.text, marks=self._marked.marks, key=key, reasons=reasons)

    def translated(self, translation: UnitTranslation) -> str:
        """The string with its passages translated. Lines beyond their number join the last; missing ones are empty."""
        lines = self._marked.restored(translation.text, translation.marks).split("\n", len(self._passages) - 1)
        lines[-1] = lines[-1].replace("\n", " ")
        lines += [""] * (len(self._passages) - len(lines))
        parts, position = [], 0
        for passage, line in zip(self._passages, lines, strict=True):
            parts += [self.string[position : passage.start], passage.laid_out(line)]
            position = passage.end
        return "".join([*parts, self.string[position:]])


def has_words(text: str, *, numbers: bool = False) -> bool:
    """Whether a letter, or with `numbers` a digit, is in a text, apart from its placeholders.

    All of `{n, plural, one {# file} …}` is one placeholder.
    """
    for _ in range(_DEPTH):
        text, count = PLACEHOLDER.subn("", text)
        if not count:
            break
    return any(character.isalpha() or (numbers and character.isdigit()) for character in text)


def is_same_in_all_languages(text: str) -> bool:
    """Whether a text has no letter, apart from placeholders without words: a number, `%d: %s`."""
    return not any(character.isalpha() for character in PLACEHOLDER.sub("", text))
