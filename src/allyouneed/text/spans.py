"""Spans that are copied and not translated: URLs, email addresses, placeholders, tags and numbers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from typing import Literal

from ..config import SPANS
from ..settings import require_whole

# Quantifiers are possessive (`++`) wherever backtracking could take quadratic time.

# A conversion of printf: an argument's name or number, flags, a width, a precision, a length, a conversion.
_PRINTF = (
    r"(?:\([^()\n]*+\)|<\w++>|\d++\$)?[-+#0'I]*+(?:\d++|\*(?:\d++\$)?)?(?:\.(?:\d++|\*(?:\d++\$)?)?)?"
    r"(?:hh|ll|[hlLqjztZ])?[diouxXeEfFgGaAcCsSpnrm@]"
)
_FLAT = r"\{[^{}]*+\}"
_BRACES = reduce(lambda inner, _: rf"\{{[^{{}}]*+(?:{inner}[^{{}}]*+)*+\}}", range(2), _FLAT)  # three deep
_PLACEHOLDERS = (
    r"\{{2,3}[^{}\n]*+\}{2,3}",  # {{name}}, as in Mustache and Jinja
    r"\{%[^{}%]*+%\}",
    r"\$t\([^()\n]*+\)",  # i18next: the text of another key
    # {count, plural, one {# file} other {# files}}, as in ICU messages, as a whole
    r"\{\s*+\w++\s*+,\s*+(?:plural|select|selectordinal|choice|number|date|time|spellout|ordinal|duration)\b"
    rf"[^{{}}]*+(?:{_BRACES}[^{{}}]*+)*+\}}",
    # {}, {name!r:>10}, {x:{width}}, ${name}, %{name}
    r"[$%#]?\{[^{}\s]*+(?:\{[^{}\s]*+\}[^{}\s]*+)*+(?: [<>=^][^{}\s]*+)?\}",
    r"%%",
    r"%[-+#0 ]*+\d*+<PRI\w++>",
    # "100%ig" and "10 %ige" are words: after a digit a conversion must not run into a letter.
    rf"(?<!\d)(?<!\d )%{_PRINTF}",
    rf"%{_PRINTF}(?!\w)",
    r"(?<!\d)%L?(?:\d\d?|n)(?!\d)",  # Qt
    r"(?<!\d)(?<!\d )%[-_^#]?[A-Za-z](?!\w)",  # strftime
    r"\$\w++\$",
)

# In this order: a span of an earlier kind is not searched for later kinds.
_PATTERNS: dict[str, str] = {
    "urls": r"(?:https?://|ftp://|www\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]]",
    "emails": r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++",
    "tags": r"</?(?:[A-Za-z][^<>]*+|\d++\s*+/?)>",
    "placeholders": "|".join(_PLACEHOLDERS),
    "numbers": r"\d+(?:[.,:/-]\d+)*",
}


def find_spans(text: str, kinds: Iterable[str] = SPANS) -> list[tuple[str, str]]:
    """The spans of these kinds, in their order in the text; none overlaps another."""
    return [(match.lastgroup or "", match.group()) for match in span_matches(text, kinds)]


def span_matches(text: str, kinds: Iterable[str] = SPANS) -> Iterator[re.Match[str]]:
    """The same with their positions; `lastgroup` is the kind."""
    included = [kind for kind in SPANS if kind in set(kinds)]
    if included:
        yield from re.finditer("|".join(f"(?P<{kind}>{_PATTERNS[kind]})" for kind in included), text)


Untranslatable = Literal["urls", "emails", "numbers", "signs"]


def untranslatable(text: str) -> Untranslatable | None:
    """The kind of `text` if nothing in it needs translation, else None.

    "numbers" have digits but no letter (a date, 3 %), "signs" have neither (an emoji, an ellipsis).
    """
    if not text or text.isspace() or text.isalpha():  # a quick test that most words pass
        return None
    spans = find_spans(text, ("urls", "emails"))
    if len(spans) == 1 and spans[0][1] == text.strip():
        return spans[0][0]  # type: ignore[return-value]
    if any(character.isalpha() for character in text):
        return None
    return "numbers" if any(character.isnumeric() for character in text) else "signs"


@dataclass(slots=True)
class CopyCount:
    """How often a kind occurred in sources, and how often the target had the same text."""

    seen: int = 0
    same: int = 0

    def note(self, same: bool) -> None:
        """Count one more occurrence."""
        self.seen += 1
        self.same += same


ENOUGH = 10  # occurrences; a kind with fewer is judged by other counts
NEARLY_ALWAYS = 0.9  # share of whole sources from which on a kind is copied
OFTEN = 1 / 3  # the same of words inside sources; "2 dogs" is often "zwei Hunde"
_AROUND = ".,;:!?()\"'"  # punctuation around a word
_MARKED = re.compile(r"[%{$<]")  # what all placeholders and tags have; most texts have none


@dataclass(frozen=True, slots=True)
class CopyStatistics:
    """How often training pairs copy text that needs no translation, by kind: as a whole source, or as a word in it.

    `inside` also has the placeholders and tags in a source.
    """

    alone: dict[str, CopyCount] = field(default_factory=dict)
    inside: dict[str, CopyCount] = field(default_factory=dict)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], *, limit: int = 100_000) -> "CopyStatistics":
        """Counted in the first `limit` pairs of a source and a target."""
        statistics = cls()
        for source, target in islice(pairs, limit):
            if kind := untranslatable(source):
                statistics.alone.setdefault(kind, CopyCount()).note(source.strip() == target.strip())
            else:
                for word in source.split():
                    bare = word.strip(_AROUND) or word
                    if kind := untranslatable(bare):
                        statistics.inside.setdefault(kind, CopyCount()).note(bare in target)
                for name, span in find_spans(source, ("tags", "placeholders")) if _MARKED.search(source) else ():
                    statistics.inside.setdefault(name, CopyCount()).note(span in target)
        return statistics

    @classmethod
    def from_table(cls, table: Mapping[str, Mapping[str, Mapping[str, int]]]) -> "CopyStatistics":
        """From what `dataclasses.asdict` made of it. Refuses counts that are no whole numbers of at least 0."""
        for part in table.values():
            for kind, counts in part.items():
                for name, count in counts.items():
                    require_whole(f"copies of {kind!r:.40}, {name!r:.40},", count, least=0)
        return cls(
            **{name: {kind: CopyCount(**counts) for kind, counts in part.items()} for name, part in table.items()}
        )

    def is_copied(self, text: str) -> bool:
        """Whether `text` needs no translation and is of a kind that the training pairs often copied.

        A kind is judged by whole sources; if there are too few, by words inside sources; if there are too few of
        these too, by all kinds together.
        """
        kind = untranslatable(text)
        if kind is None:
            return False
        everything = [*self.alone.values(), *self.inside.values()]
        together = CopyCount(sum(part.seen for part in everything), sum(part.same for part in everything))
        for part, share in ((self.alone.get(kind), NEARLY_ALWAYS), (self.inside.get(kind), OFTEN), (together, OFTEN)):
            if part and part.seen >= ENOUGH:
                return part.same >= share * part.seen
        return False

    def is_copied_inside(self, kind: str) -> bool:
        """Whether the training pairs do not speak against copying spans of a kind that are part of a source."""
        part = self.inside.get(kind, CopyCount())
        return part.seen < ENOUGH or part.same >= NEARLY_ALWAYS * part.seen

    def is_contradicted(self, text: str) -> bool:
        """Whether some training pair has another target for a whole source of the kind of `text`."""
        part = self.alone.get(untranslatable(text) or "")
        return part is not None and part.same < part.seen
