"""Split a long text: at the ends of sentences, else of clauses, else of words."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from sentencex import segment  # type: ignore[import-untyped]

_OTHER_BLANKS = re.compile(r"[^\S\x00-\x7f]")
CharSpan = tuple[int, int]  # from a character up to another


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops
    of many scripts. It needs a language; a bundle may not name one, and English is the library's
    fallback for most.
    """
    starts = pairwise([0, *_sentence_ends(text)])
    return [sentence for start, end in starts if (sentence := text[start:end].strip())]


def _sentence_ends(text: str) -> list[int]:
    """Where the sentences end. The library panics at some blanks beyond ASCII, so that it sees plain ones."""
    return list(accumulate(map(len, segment("en", _OTHER_BLANKS.sub(" ", text)))))


def cut(text: str, fits: Callable[[str], bool], *, whole: Sequence[CharSpan] = ()) -> list[str]:
    """`text` in segments that fit: sentences; the clauses of a sentence that does not fit; the words of such a clause.

    Neighbouring clauses and words are joined as long as they fit. A word that does not fit is a segment
    by itself. No cut is inside a span of `whole`, (start, end) each.
    """
    pieces = [
        text[start:end].strip()
        for sentence in _parts((0, len(text)), _sentence_ends(text), whole)
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
