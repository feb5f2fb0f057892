"""Terms whose translation is settled: `term → translation`, from a file of two columns."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..corpus.lines import text_lines
from ..errors import DataError

_SIGNS = " \t\n\"'«»“”„‘’()[]¿¡*-–—"
_ENDS = ".!?…:。！？"


class Glossary:
    """Terms and what each must become.

    A term is found as whole words, ignoring case unless it has a capital letter; of two that overlap
    the longer counts. With several translations any one of them will do; a capital at the beginning of
    a sentence may be carried over.
    """

    def __init__(self, terms: Mapping[str, str | Iterable[str]]) -> None:
        self._terms = {
            " ".join(term.split()): (translations,) if isinstance(translations, str) else tuple(translations)
            for term, translations in terms.items()
        }
        for term, translations in self._terms.items():
            if not term or not translations or not all(translation.strip() for translation in translations):
                raise DataError(f"a glossary needs a term and a translation; got {term!r} → {translations!r}")
        longest_first = sorted(self._terms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_whole, longest_first))) if longest_first else None
        self._exact = {_key(term): term for term in self._terms}

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """From a file of lines `term TAB translation`; a term on several lines may become any of its translations."""
        terms: dict[str, list[str]] = {}
        for number, line in enumerate(text_lines(path), start=1):
            if not line or line.startswith("#"):
                continue
            term, _, translation = (part.strip() for part in line.partition("\t"))
            if not (term and translation) or "\t" in translation:
                raise DataError(f"{path}, line {number} must be a term, a tab and its translation; got {line!r}")
            terms.setdefault(term, []).append(translation)
        return cls(terms)

    def normalized(self, form: Callable[[str], str]) -> "Glossary":
        """The same glossary, its terms and translations in another form."""
        terms: dict[str, list[str]] = {}
        for term, translations in self._terms.items():
            terms.setdefault(form(term), []).extend(map(form, translations))
        return Glossary(terms)

    def __len__(self) -> int:
        return len(self._terms)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where terms stand in a text: (start, end)."""
        return [match.span() for match in self._pattern.finditer(text)] if self._pattern else []

    def find(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The terms that stand in a text, one after another, and what each may become.

        Where the text gives a term a capital, at the beginning of a sentence or because it is in a title,
        each translation may have one too.
        """
        if self._pattern is None:
            return
        for match in self._pattern.finditer(text):
            found = " ".join(match.group().split())
            term = found if found in self._terms else self._exact.get(found.lower())
            if term is not None:
                capital = found[0].isupper() and (term[0] != found[0] or _begins_sentence(text, match.start()))
                yield term, _with_capitals(self._terms[term]) if capital else self._terms[term]


def _begins_sentence(text: str, place: int) -> bool:
    """Whether nothing but signs stands between a place and the beginning of the text, or the end of a sentence."""
    before = text[:place].rstrip(_SIGNS)
    return not before or before[-1] in _ENDS


def _with_capitals(translations: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*translations, *(word[:1].upper() + word[1:] for word in translations))))


def _key(term: str) -> str:
    return term.lower() if term == term.lower() else term


def _whole(term: str) -> str:
    words = r"\s+".join(re.escape(word) for word in term.split(" "))
    words = words if term != term.lower() else f"(?i:{words})"
    before = r"(?<!\w)" if term[0].isalnum() else ""
    after = r"(?!\w)" if term[-1].isalnum() else ""
    return f"{before}{words}{after}"
