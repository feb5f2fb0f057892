"""Split a long text: at the ends of sentences, else of clauses, else of words."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from sentencex import segment  # type: ignore[import-untyped]

CharSpan = tuple[int, int]  # from a character up to another


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops
    of many scripts. It needs a language; a bundle may not name one, and English is the library's
    fallback for most.
    """
    return [sentence.strip() for sentence in segment("en", text) if sentence.strip()]


def cut(text: str, fits: Callable[[str], bool], *, whole: Sequence[CharSpan] = ()) -> list[str]:
    """`text` in segments that fit: sentences; the clauses of a sentence that does not fit; the words of such a clause.

    Neighbouring clauses and words are joined as long as they fit. A word that does not fit is a segment
    by itself. No cut is inside a span of `whole`, (start, end) each.
    """
    ends = accumulate(len(sentence) for sentence in segment("en", text))
    pieces = [
        text[start:end].strip()
        for sentence in _parts((0, len(text)), ends, whole)
        for start, end in _cut_sentence(text, sentence, fits, whole)
    ]
    return [piece for piece in pieces if piece]


def _cut_sentence(
    text: str, sentence: CharSpan, fits: Callable[[str], bool], whole: Sequence[CharSpan]
) -> list[CharSpan]:
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


def _parts(span: CharSpan, ends: Iterable[int], whole: Sequence[CharSpan]) -> list[CharSpan]:
    """A span cut at those of `ends` that lie inside it, but not inside one of `whole`."""
    start, end = span
    inside = [cut for cut in ends if start < cut < end and not any(a < cut < b for a, b in whole)]
    return list(pairwise([start, *inside, end]))


_CLAUSE_ENDS = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
