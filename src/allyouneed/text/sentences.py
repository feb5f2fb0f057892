"""Where a long text may be cut: at the ends of sentences, else of clauses, else of words."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from sentencex import segment  # type: ignore[import-untyped]

Span = tuple[int, int]  # from a character up to another


def sentences(text: str) -> list[str]:
    """The sentences of a text, outer blanks left out.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops
    of many scripts. It wants a language; a bundle does not know its own, and English is what the
    library falls back on for most.
    """
    return [sentence.strip() for sentence in segment("en", text) if sentence.strip()]


def cut(text: str, fits: Callable[[str], bool], *, whole: Sequence[Span] = ()) -> list[str]:
    """`text` in pieces that fit: sentences, and of one that does not fit, clauses; of these, words.

    Clauses and words are put together again as long as they fit. A word that does not fit stays as it
    is. No cut goes through a span of `whole`, (start, end) each.
    """
    ends = accumulate(len(sentence) for sentence in segment("en", text))
    pieces = [
        text[start:end].strip()
        for sentence in _parts((0, len(text)), ends, whole)
        for start, end in _cut_sentence(text, sentence, fits, whole)
    ]
    return [piece for piece in pieces if piece]


def _cut_sentence(text: str, sentence: Span, fits: Callable[[str], bool], whole: Sequence[Span]) -> list[Span]:
    def suits(start: int, end: int) -> bool:
        return fits(text[start:end].strip())

    if suits(*sentence):
        return [sentence]
    clauses = _parts(sentence, (match.end() for match in _CLAUSE_ENDS.finditer(text)), whole)
    blanks = [match.end() for match in re.finditer(r"\s+", text)]
    words = [word for clause in clauses for word in ([clause] if suits(*clause) else _parts(clause, blanks, whole))]
    pieces = words[:1]
    for start, end in words[1:]:
        if suits(pieces[-1][0], end):
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return pieces


def _parts(span: Span, ends: Iterable[int], whole: Sequence[Span]) -> list[Span]:
    """A span cut at those of `ends` that lie inside it, but not inside one of `whole`."""
    start, end = span
    inside = [cut for cut in ends if start < cut < end and not any(a < cut < b for a, b in whole)]
    return list(pairwise([start, *inside, end]))


_CLAUSE_ENDS = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
