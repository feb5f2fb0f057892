"""Split a long text at the ends of sentences, then of clauses, then of words; and join the translated parts.

Where a sentence ends depends on the language of the text ("am 3. Mai", "Il Sig. Bianchi"). The language of the
translation decides whether there is a blank between two sentences.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from sentencex import segment  # type: ignore[import-untyped]

from ..config.language_tags import primary_language
from .spans import iter_spans

OTHER_BLANKS = re.compile(r"[^\S\x00-\x7f]")
CharSpan = tuple[int, int]  # (start, end)


# Languages without blanks between sentences.
UNSPACED = frozenset(["bo", "dz", "ja", "km", "lo", "lzh", "my", "th", "wuu", "yue", "zh"])
# Languages that write ordinals as digits with a full stop ("den 3. maj"), for which the library has no rule.
ORDINALS = frozenset(["bs", "cs", "da", "et", "fi", "hr", "hu", "is", "lv", "nb", "nn", "no", "sk", "sl", "sr", "tr"])
ORDINAL = re.compile(r"(?<!\w)\d{1,2}\.\s+$")
# "pag. 3", "Nr. 5": a short word before a number, unless the number begins an item of a list.
SHORT_WORD = re.compile(r"(?<!\w)[^\W\d_]{1,5}\.\s+$")
NUMBER = re.compile(r"\d(?!\d?[.)]\s)")
INITIAL = re.compile(r"(?<!\w)(?!I)([^\W\d_])\.\s+$")  # "M. Dupont", but not "So do I."
# A sentence only ends where nearly all of these languages see an end: the library's list for a language may lack an
# abbreviation, and a text may be in another language. Two sentences that stay together are translated well, but half a
# sentence is not. Where the language is unknown, 95 to 99 % of 10,000 pairs of Tatoeba sentences are still separated.
VOTERS = ("cs", "de", "es", "fr", "it", "nl", "pl", "pt", "ru")
ENOUGH_VOTES = 3
ENOUGH_IF_UNKNOWN = 2
# For these languages the library takes 8 ms per sentence, so the rules of a similar language are used.
SLOW = {"ca": "es", "da": "no"}
WINDOW = 400  # characters that the library reads at once: for Italian its time grows with their square
WORD_BEFORE = re.compile(r"\S{1,40}\s+$")
WORD_AFTER = re.compile(r"\S{1,40}")


def _sentence_ends(text: str, language: str) -> list[int]:
    """Find where the sentences of a text end. `language` is a BCP 47 tag, or "" if it is unknown.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops of many scripts, for
    each language separately.
    """
    code = primary_language(language)
    has_ordinals = code in ORDINALS or not code
    most = ENOUGH_VOTES if code else ENOUGH_IF_UNKNOWN
    return [
        end
        for end in _library_ends(text, SLOW.get(code, code) or "en")
        if not _is_inside_sentence(text, end, has_ordinals) and _votes_against(text, end) < most
    ]


def _library_ends(text: str, code: str) -> Iterator[int]:
    text = OTHER_BLANKS.sub(" ", text)  # the library panics at some blanks beyond ASCII
    start = 0
    while start < len(text):
        window = text[start : start + WINDOW]
        is_last = start + len(window) == len(text)
        ends = list(accumulate(map(len, segment(code, window))))
        # The last end is only the end of the window, and an end close to it may be an abbreviation.
        inner_ends = ends if is_last else [end for end in ends if end <= WINDOW * 3 // 4]
        yield from (start + end for end in inner_ends)
        if is_last:
            return
        blank = window.rfind(" ", 0, WINDOW * 3 // 4)
        start += inner_ends[-1] if inner_ends else blank + 1 or len(window)


def _votes_against(text: str, end: int) -> int:
    before = WORD_BEFORE.search(text, max(0, end - 44), end)
    after = WORD_AFTER.match(text, end)
    return _count_votes(before.group().strip(), after.group()) if before and after else 0


@lru_cache(maxsize=2**16)
def _count_votes(word: str, following: str) -> int:
    """Count the languages whose rules see no sentence boundary between two words."""
    return sum(len(segment(voter, f"{word} {following}")) < 2 for voter in VOTERS)


def _is_inside_sentence(text: str, end: int, has_ordinals: bool) -> bool:
    before = text[max(0, end - 12) : end]
    if end < len(text) and SHORT_WORD.search(before) and NUMBER.match(text, end):
        return True
    if end == len(text) or not text[end].isalpha():
        return False
    initial = INITIAL.search(before)
    return bool((initial and initial[1].isupper()) or (has_ordinals and ORDINAL.search(before)))


def blank_between(language: str) -> str:
    """Return the blank between two sentences of a language: "" for some, such as Chinese and Japanese."""
    return "" if primary_language(language) in UNSPACED else " "


def gap_between(gap: str, language: str) -> str:
    """Return the text between two translated sentences, given the `gap` between their sources.

    Line breaks and tabs are kept. If the language is unknown, every gap is kept.
    """
    if gap.strip(" \u3000") or not primary_language(language):
        return gap
    blank = blank_between(language)
    return gap.replace("\u3000", blank) or blank if blank else ""


def sentence_spans(text: str, whole: Sequence[CharSpan] = (), *, language: str = "") -> tuple[CharSpan, ...]:
    """Return where the sentences of a text in `language` are, without the blanks around them.

    A line break ends a sentence. An end inside a copied span, or inside a span of `whole`, does not count.
    """
    spans: list[CharSpan] = []
    for line in re.finditer(r"[^\r\n]+", text):
        start = line.start()
        inside = [span.bounds for span in iter_spans(line.group())]
        inside += [(first - start, last - start) for first, last in whole]
        for sentence in cut(line.group(), lambda _: True, language=language, whole=inside):
            start = text.index(sentence, start)
            spans.append((start, start + len(sentence)))
            start += len(sentence)
    return tuple(spans)


def whole_span(text: str) -> tuple[CharSpan, ...]:
    """Return a text, without the blanks around it, as a single sentence: its (start, end), or () if it is blank."""
    return ((len(text) - len(text.lstrip()), len(text.rstrip())),) if text.strip() else ()


def cut(text: str, fits: Callable[[str], bool], *, language: str = "", whole: Sequence[CharSpan] = ()) -> list[str]:
    """Cut `text` into segments that fit: at sentences, then at clauses, then at words.

    Sentences end by the rules of `language`, a BCP 47 tag. Neighbouring clauses and words are joined as long as the
    result fits. A word that does not fit is a segment by itself. No cut is inside a span of `whole`, given as (start,
    end).
    """
    is_inside = _inside(whole)
    pieces = [
        text[start:end].strip()
        for sentence in _parts((0, len(text)), _sentence_ends(text, language), is_inside)
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
    clauses = _parts(sentence, [match.end() for match in CLAUSE_ENDS.finditer(text, *sentence)], is_inside)
    blanks = [match.end() for match in BLANKS.finditer(text, *sentence)]
    words = [word for clause in clauses for word in ([clause] if suits(*clause) else _parts(clause, blanks, is_inside))]
    pieces = words[:1]
    for start, end in words[1:]:
        if suits(pieces[-1][0], end):
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return pieces


def _parts(span: CharSpan, ends: Sequence[int], is_inside: Callable[[int], bool]) -> list[CharSpan]:
    """Cut a span at the `ends` inside it, but not where `is_inside` returns True.

    `ends` are sorted, so that the time for all spans grows only linearly with their number.
    """
    start, end = span
    inside = ends[bisect_right(ends, start) : bisect_left(ends, end)]
    return list(pairwise([start, *(cut for cut in inside if not is_inside(cut)), end]))


def _inside(spans: Iterable[CharSpan]) -> Callable[[int], bool]:
    """Return a function that says whether a position is inside any of the spans, which may overlap."""
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


BLANKS = re.compile(r"\s+")
CLAUSE_ENDS = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
