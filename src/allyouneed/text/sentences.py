"""Split a long text: at the ends of sentences, else of clauses, else of words."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from sentencex import segment  # type: ignore[import-untyped]

_OTHER_BLANKS = re.compile(r"[^\S\x00-\x7f]")
CharSpan = tuple[int, int]  # from a character up to another


def _sentence_ends(text: str) -> list[int]:
    """Where the sentences end.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops of many scripts. It
    needs a language; a bundle may not name one, and English is the library's fallback for most. It panics at some
    blanks beyond ASCII, so that it sees plain ones.
    """
    return list(accumulate(map(len, segment("en", _OTHER_BLANKS.sub(" ", text)))))


def cut(text: str, fits: Callable[[str], bool], *, whole: Sequence[CharSpan] = ()) -> list[str]:
    """`text` in segments that fit: sentences; the clauses of a sentence that does not fit; the words of such a clause.

    Neighbouring clauses and words are joined as long as they fit. A word that does not fit is a segment
    by itself. No cut is inside a span of `whole`, (start, end) each.
    """
    is_inside = _inside(whole)
    pieces = [
        text[start:end].strip()
        for sentence in _parts((0, len(text)), _sentence_ends(text), is_inside)
        for start, end in _cut_sentence(text, sentence, fits, is_inside)
    ]
    return [piece for piece in pieces if piece]


def _cut_sentence(
    text: str, sentence: CharSpan, fits: Callable[[str], bool], is_inside: Callable[[int], bool]
) -> list[CharSpan]:
    def suits(start: int, end: int) -> bool:
        return fits(text[start:end].strip())

    if suits(*sentence):
        return [sentence]
    clauses = _parts(sentence, (match.end() for match in _CLAUSE_ENDS.finditer(text, *sentence)), is_inside)
    blanks = [match.end() for match in _BLANKS.finditer(text, *sentence)]
    words = [word for clause in clauses for word in ([clause] if suits(*clause) else _parts(clause, blanks, is_inside))]
    pieces = words[:1]
    for start, end in words[1:]:
        if suits(pieces[-1][0], end):
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return pieces


def _parts(span: CharSpan, ends: Iterable[int], is_inside: Callable[[int], bool]) -> list[CharSpan]:
    """A span cut at those of `ends` that lie inside it, but not where `is_inside` says that something stays whole."""
    start, end = span
    return list(pairwise([start, *(cut for cut in ends if start < cut < end and not is_inside(cut)), end]))


def _inside(spans: Iterable[CharSpan]) -> Callable[[int], bool]:
    """Whether a place is inside one of the spans, which may overlap."""
    joined: list[CharSpan] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    starts = [start for start, _ in joined]

    def is_inside(cut: int) -> bool:
        before = bisect_left(starts, cut)
        return before > 0 and cut < joined[before - 1][1]

    return is_inside


_BLANKS = re.compile(r"\s+")
_CLAUSE_ENDS = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
