"""Texts in capitals: count them among the training sources, and rewrite them in letters that the model knows.

With subwords, a word in capitals has other tokens than the same word in small letters, most of them single letters. So
a model that has seen few texts in capitals cannot translate them, although it knows every word.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ..config.settings import require_whole
from .spans import iter_spans

RARE = 0.01  # share of the training sources; if fewer are in capitals, such texts are rare
SHORTEST = 5  # capitals; a text with fewer may be an abbreviation
SEEN, MOST_WORDS = 3, 2_000  # a capitalized word is kept if it occurs SEEN times, and at most MOST_WORDS are kept
KEPT = ("urls", "emails", "tags", "placeholders")
WORD = re.compile(r"[^\W\d_]+")
BEGINNINGS = re.compile(r"(?:^|[.!?…:]\s)[\W\d_]*([^\W\d_])")  # sentences, up to their first letter


@dataclass(frozen=True, slots=True)
class CaseStatistics:
    """How the sources of some pairs use capitals.

    `contradicted` counts sources in capitals whose target has small letters. `capitalized` are the words with capitals
    inside a sentence, such as `I` and `Tom`.
    """

    sources: int = 0
    in_capitals: int = 0
    contradicted: int = 0
    begin_with_capital: int = 0
    capitalized: tuple[str, ...] = ()  # the most frequent first

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], *, limit: int = 20_000) -> "CaseStatistics":
        """Compute the statistics of the first `limit` pairs of a source and a target."""
        counts = Counter[str]()
        forms = Counter[str]()
        for source, target in islice(pairs, limit):
            beginnings = {match.start(1) for match in BEGINNINGS.finditer(source)}
            is_in_capitals = capitals(source) > 0
            counts["sources"] += 1
            counts["in_capitals"] += is_in_capitals
            counts["contradicted"] += is_in_capitals and any(map(str.islower, target))
            counts["begin_with_capital"] += any(source[start].isupper() for start in sorted(beginnings)[:1])
            if not is_in_capitals:
                forms.update(match[0] for match in WORD.finditer(source) if match.start() not in beginnings)
        usual: dict[str, str] = {}
        for word, times in forms.most_common():
            if times >= SEEN:
                usual.setdefault(word.lower(), word)
        kept = [word for small, word in usual.items() if word != small]
        return cls(**counts, capitalized=tuple(kept[:MOST_WORDS]))

    def __post_init__(self) -> None:
        for name in ("sources", "in_capitals", "contradicted", "begin_with_capital"):
            require_whole(name, getattr(self, name), least=0)

    def is_unusual(self, text: str) -> bool:
        """Return True if `text` is in capitals, although few training sources were, and the targets of these mostly
        kept the capitals.

        False if there were no sources.
        """
        is_contradicted = self.contradicted >= SEEN and 2 * self.contradicted > self.in_capitals
        return self.in_capitals < RARE * self.sources and not is_contradicted and capitals(text) >= SHORTEST

    def to_sentence_case(self, text: str, kept: Collection[tuple[int, int]] = ()) -> str:
        """Write a text in small letters, except for the capitalized words.

        Each sentence begins with a capital if most of the sources do. URLs, e-mail addresses, tags, placeholders and
        the positions `kept`, given as (start, end), stay unchanged.
        """
        usual = {word.lower(): word for word in self.capitalized}

        def lower(part: str) -> str:
            return WORD.sub(lambda match: usual.get(match[0].lower(), match[0].lower()), part)

        parts = [(part if is_span else lower(part), is_span) for part, is_span in _parts(text, kept)]
        small = "".join(part for part, _ in parts)
        if 2 * self.begin_with_capital < self.sources:
            return small
        outside = "".join(" " * len(part) if is_span else part for part, is_span in parts)
        beginnings = {match.start(1) for match in BEGINNINGS.finditer(outside)}
        return "".join(letter.upper() if i in beginnings else letter for i, letter in enumerate(small))


def capitals(text: str) -> int:
    """Count the capital letters of a text; 0 if it also has small letters.

    URLs, e-mail addresses, tags and placeholders do not count.
    """
    letters = "".join(part for part, is_span in _parts(text) if not is_span)
    return 0 if any(map(str.islower, letters)) else sum(map(str.isupper, letters))


def to_capitals(text: str) -> str:
    """Write a text in capitals, except for URLs, e-mail addresses, tags and placeholders."""
    return "".join(part if is_span else part.upper() for part, is_span in _parts(text))


def _parts(text: str, kept: Collection[tuple[int, int]] = ()) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text in order, each with True if it is a span that stays unchanged."""
    end = 0
    for start, stop in sorted([*(span.bounds for span in iter_spans(text, KEPT)), *kept]):
        if start >= end:
            yield text[end:start], False
            yield text[start:stop], True
            end = stop
    yield text[end:], False
