"""Character references of HTML in a string (`&amp;`): read as characters, and written as the string has them."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from html import unescape
from html.entities import html5

_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_OF_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def referenced_character(reference: str) -> str:
    """The character that HTML shows for a reference (`&rarr;`); "" if it is none of HTML, or of several characters."""
    if not _REFERENCE.fullmatch(reference):
        return ""
    character = unescape(reference) if reference[1] == "#" else html5.get(reference[1:], "")
    is_one = len(character) == 1 and character != "\N{REPLACEMENT CHARACTER}"  # which stands for what is none
    return character if is_one and unicodedata.category(character) not in ("Cn", "Co") else ""


def is_visible(character: str) -> bool:
    """Whether a character can be seen: no blank, no line end, no joiner."""
    return unicodedata.category(character)[0] not in "CZ"


class CharacterReferences:
    """The references in the parts of one string.

    A string with references is HTML: signs of markup that it has nowhere are written as references, too. With
    `is_markup` every string is.
    """

    def __init__(self, *, is_markup: bool = False) -> None:
        self._is_markup = is_markup
        self._read: list[tuple[str, str]] = []  # texts, or characters and their references, in the order of the string

    def read(self, text: str) -> str:
        """A part of the string with the characters that its references stand for; others stay as they are."""
        position, read = 0, len(self._read)
        for match in _REFERENCE.finditer(text):
            character = referenced_character(match.group())
            if character and is_visible(character):
                self._read += [(bare := text[position : match.start()], bare), (character, match.group())]
                position = match.end()
        self._read.append((text[position:], text[position:]))
        return "".join(character for character, _ in self._read[read:])

    @property
    def signs(self) -> frozenset[str]:
        """The characters that the string writes as references."""
        return frozenset(character for character, written in self._read if character != written)

    def writer(self) -> Callable[[str], str]:
        """A function that writes the parts of a translation, in their order.

        The first `&` of the translation is written as the first one of the string, and so on; one that the string does
        not have is written as a reference if the string writes it so elsewhere.
        """
        signs = self.signs
        forms = defaultdict[str, list[str]](list)  # of each sign, how the string writes it, one after another
        for characters, written in self._read:
            for character in characters:
                if character in signs or character in _OF_MARKUP:
                    forms[character].append(written if characters != written else character)
        references = {character: written for character, written in self._read if character != written}
        if signs or self._is_markup:
            references = {sign: reference for sign, reference in _OF_MARKUP.items() if sign not in forms} | references
        if not references:
            return str
        remaining = {sign: iter(written) for sign, written in forms.items()}

        def write(match: re.Match[str]) -> str:
            sign = match.group()
            return next(remaining.get(sign, iter(())), references[sign])

        return partial(re.compile(f"[{re.escape(''.join(references))}]").sub, write)
