"""Terms with fixed translations, from a file with two columns: `term TAB translation`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from ..errors import DataError
from .lines import text_lines
from .spans import in_word_class

_PUNCTUATION = " \t\n\"'«»“”„‘’()[]¿¡*-–—"
_ENDS = ".!?…:。！？"


class Glossary:
    """Terms and the translations of each.

    In scripts that put blanks between words, a term only matches whole words. A term without a capital letter matches
    in any case. If two terms overlap, the longer one matches. If a term has several translations, any of them may be
    used. At the beginning of a sentence a translation may be capitalized.
    """

    def __init__(self, terms: Mapping[str, str | Iterable[str]]) -> None:
        self._terms = {
            " ".join(term.split()): tuple(translations)
            if isinstance(translations, Iterable) and not isinstance(translations, str)
            else (translations,)
            for term, translations in terms.items()
        }
        for term, translations in self._terms.items():
            if not term or not translations or not all(isinstance(one, str) and one.strip() for one in translations):
                raise DataError(f"a glossary entry needs a term and a translation; got {term!r} → {translations!r}")
        longest_first = sorted(self._terms, key=lambda term: (-len(term), _ignores_case(term)))
        self._pattern = re.compile(_whole_words(map(_words, longest_first))) if longest_first else None

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """Read a file of lines `term TAB translation`. A term that is on several lines has several translations."""
        terms: dict[str, list[str]] = {}
        for number, line in enumerate(text_lines(path), start=1):
            if not line or line.startswith("#"):
                continue
            term, _, translation = (part.strip() for part in line.partition("\t"))
            if not (term and translation) or "\t" in translation:
                raise DataError(f"{path}, line {number} must be a term, a tab and its translation; got {line!r}")
            terms.setdefault(term, []).append(translation)
        return cls(terms)

    def fingerprint(self) -> str:
        """Return a fingerprint that differs for different glossaries."""
        return sha256(repr(sorted(self._terms.items())).encode()).hexdigest()

    def normalized(self, normalization: Callable[[str], str]) -> "Glossary":
        """Return a glossary with normalized terms and translations."""
        terms: dict[str, list[str]] = {}
        for term, translations in self._terms.items():
            terms.setdefault(normalization(term), []).extend(map(normalization, translations))
        return Glossary(terms)

    def __len__(self) -> int:
        return len(self._terms)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the terms in a text are: (start, end)."""
        return [match.span() for match in self._pattern.finditer(text)] if self._pattern else []

    def find(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each term in a text, in order, with its translations.

        If the text capitalizes the term, at the beginning of a sentence or in a title, capitalized translations are
        added.
        """
        if self._pattern is None:
            return
        for match in self._pattern.finditer(text):
            matched = " ".join(match.group().split())
            term = self._term(matched)
            capital = matched[0].isupper() and (term[0] != matched[0] or _begins_sentence(text, match.start()))
            yield term, _with_capitals(self._terms[term]) if capital else self._terms[term]

    def _term(self, matched: str) -> str:
        for form in (matched, matched.lower()):
            if form in self._terms:
                return form
        # Lowering a capital can give two characters, as for the Turkish İ.
        return next(term for term in self._terms if re.fullmatch(_words(term), matched))


def _begins_sentence(text: str, position: int) -> bool:
    """Return True if only punctuation separates a position from the start of the text or another sentence's end."""
    before = text[:position].rstrip(_PUNCTUATION)
    return not before or before[-1] in _ENDS


def _with_capitals(translations: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*translations, *(word[:1].upper() + word[1:] for word in translations))))


def _ignores_case(term: str) -> bool:
    return term == term.lower()


def _words(term: str) -> str:
    words = r"\s+".join(re.escape(word) for word in term.split(" "))
    return f"(?i:{words})" if _ignores_case(term) else words


def _whole_words(patterns: Iterable[str]) -> str:
    """Make a pattern that matches any of these patterns as a whole word."""
    boundary = f"(?:(?<!{in_word_class()})|(?!{in_word_class()}))"
    return f"{boundary}(?:{'|'.join(patterns)}){boundary}"
