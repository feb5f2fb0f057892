"""Spans that are copied instead of translated: URLs, email addresses, placeholders, tags, emoji and numbers.

Only this file recognizes spans. Code that cuts a text, requires spans in a translation, or checks them, asks this file.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, reduce
from itertools import islice
from typing import Literal, NamedTuple

from ..config import SPANS
from ..config.language_tags import primary_language
from ..config.settings import require_whole

# Quantifiers are possessive (`++`) wherever backtracking could take quadratic time.

# A printf conversion: the name or number of an argument, flags, a width, a precision, a length, a conversion.
_PRINTF = (
    r"(?:\([^()\n]*+\)|<\w++>|\d++\$)?[-+#0'I]*+(?:\d++|\*(?:\d++\$)?)?(?:\.(?:\d++|\*(?:\d++\$)?)?)?"
    r"(?:hh|ll|[hlLqjztZ])?[diouxXeEfFgGaAcCsSpnrm@]"
)
_FLAT = r"\{[^{}]*+\}"
# Braces nested up to three deep.
_BRACES = reduce(lambda inner, _: rf"\{{[^{{}}]*+(?:{inner}[^{{}}]*+)*+\}}", range(2), _FLAT)
_DOTTED = r"\w++(?:[.-]\w++)*+"  # menu.title
# A name between signs: ##ticket.title##, ###T01###, ~name~.
_FENCED = tuple(
    rf"(?<![\w{sign}]){sign}{{1,3}}[A-Za-z][\w.:-]*+{sign}{{1,3}}(?![\w{sign}])" for sign in (r"\#", "@", "~", r"\^")
)
_PLACEHOLDERS = (
    r"\{{2,3}[^{}\n]*+\}{2,3}",  # {{name}}, as in Mustache and Jinja
    r"\{%[^{}%]*+%\}|\{#[^{}#]*+#\}|\{!![^{}!]*+!!\}|<%[^<>%\n]*+%>|<\?(?:=|php\b)[^<>?\n]*+\?>|\[%[^\[\]%\n]*+%\]",
    r"\$t\([^()\n]*+\)",  # i18next: a reference to another key's text
    # vue-i18n: a reference to another key's text.
    rf"(?<!\w)@(?:\.\w++)?:(?:\([^()\s]*+\)|\{{'[^'{{}}\n]*+'\}}|{_DOTTED})",
    # ICU messages: {count, plural, one {# file} other {# files}}; Fluent: { $count -> [one] file *[other] files }. A
    # message is one span.
    r"\{\s*+[\w.-]++\s*+,\s*+(?:plural|select|selectordinal|choice|number|date|time|spellout|ordinal|duration|list)\b"
    rf"[^{{}}]*+(?:{_BRACES}[^{{}}]*+)*+\}}",
    rf"\{{\s*+\$?{_DOTTED}(?:\([^(){{}}]*+\))?\s*+->[^{{}}]*+(?:{_BRACES}[^{{}}]*+)*+\}}",
    # {}, {name!r:>10}, {x:{width}}, ${name}, %{name}
    r"[$%#@]?\{[^{}\s]*+(?:\{[^{}\s]*+\}[^{}\s]*+)*+(?: [<>=^][^{}\s]*+)?\}",
    r"[$%#@]\{[^{}\n]*+\}",
    # { name }, { $name }, { -brand }, { NUMBER($n, digits: 2) }, { "text" }, { name | filter }; {0:d MMM}
    r"\{\s*+(?:[-$@]?[\w$@][\w.$@\[\]-]*+(?:\([^(){}\n]*+\))?|\"[^\"{}\n]*+\")(?:\s*+\|\s*+[^\s{}|]++)*+\s*+\}",
    r"\{\d++(?:,-?\d++)?:[^{}\n]*+\}",
    r"%%",
    r"(?<!\d)(?<!\d )%[-+#0 ]*+\d*+<\w++>(?:\d*+[A-Za-z](?!\w))?",  # PRId64; %-<all>8s
    # "100%ig" and "10 %ige" are words: after a digit, a conversion must not continue into a letter.
    rf"(?<!\d)(?<!\d )%{_PRINTF}",
    rf"%{_PRINTF}(?!\w)",
    r"%#@\w++@",  # .stringsdict
    r"(?<!\d)%L?(?:\d\d?|n)(?!\d)",  # Qt
    r"(?<!\d)(?<!\d )%[-_^#]?[A-Za-z](?!\w)",  # strftime
    r"(?<![\w%])%[A-Za-z_]\w++(?:[.-]\w++)*+%(?![\w%])",  # %name% in Symfony and Windows
    r"\$\w++\$",
    r"(?<![\w$])\$!?[A-Za-z_]\w*+(?:(?:->|\.)\w++)*+",  # $name, $user->name
    r"(?<![\w:]):[A-Za-z_]\w*+(?![\w:])",  # :name in Laravel and SQL; an emoticon
    r"(?<![\w:]):[a-z0-9_+-]++:(?![\w:])",  # :tada:
    r"(?<![\w@./])@[A-Za-z_]\w*+(?:[./-]\w++)*+",  # @name in Drupal; a mention
    r"(?<!\w)__[A-Za-z]\w*?__(?!\w)",
    r"\[\[[^\[\]\n]++\]\]",
    *_FENCED,
    r"<<[\w.:-]++>>",
    r"\[[^\s\[\]]*?[:|<>{}@$%#=/_\\][^\s\[\]]*+\](?!\()",  # [site:name], [<file>]
    # reStructuredText literals, roles, links, substitutions and footnotes; also code between backticks, but not `old
    # quotations'.
    r"(?<![\w`])``[^`\n]++``(?![\w`])",
    r"(?<![\w`])(?::[A-Za-z][\w.+-]{0,40}+(?::[\w.+-]{1,40}+){0,3}+:)?`[^`\s](?:[^`\n]*[^`\s])?`_{0,2}(?![\w`])",
    r"(?<![\w|])\|[\w.:-]++(?: [\w.:-]++){0,3}\|_{0,2}(?![\w|])",
    r"\[(?:\d++|\#[\w.-]*+|\*|[A-Z][\w.-]*+)\]_(?!\w)",
    # [gallery ids="1,2"] in WordPress, [b] in forums
    r"\[[A-Za-z][\w-]*+(?:=[^\[\]\n]++|(?:\s++[\w-]++=(?:\"[^\"\[\n]*+\"|'[^'\[\n]*+'|[^\s\[\]\"']++))++\s*+/?)\]",
    r"\[/[A-Za-z]\w*+\]",
    r"&(?:[A-Za-z][\w.-]{1,63}|#\d{1,7}|#[xX][\da-fA-F]{1,6});",  # a reference to a character, or to a text
    r"\[(?:b|i|u|s|url|img|code|quote|center)\]",
    r"\\u[\da-fA-F]{4}",
    r"(?<![\w\\])(?:[A-Za-z]:|\\|\.{1,2}|~|%\w++%)\\[^\s\"'<>|*?,;]*+",  # a Windows path
)
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Modifiers of a picture, which are not characters by themselves: variants, joiners before another picture, regions.
_MODIFIERS = rf"(?:[\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]|\u200d(?=[{_PICTURES}]))*+"

# Tags of HTML, XML, templates, numbered tags, WebVTT and SubRip; and the written line break \n.
TAG = r"</?[#@]?[A-Za-z][^<>\n]*+>|</?\d++\s*+/?>|</?>|<[\d:.]++>|<!--[^<>\n]*+-->|\{\\[^{}\n]*+\}|(?:\\r)?\\n"

PATTERNS: dict[str, tuple[str, ...]] = {
    "urls": (r"(?:\b[a-z][a-z0-9+.-]{0,15}://|www\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]]",),
    "emails": (r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++",),
    "tags": (TAG,),
    "placeholders": _PLACEHOLDERS,
    "emoji": (rf"(?:[0-9#*]\ufe0f?\u20e3|[{_PICTURES}]{_MODIFIERS})++",),
    "numbers": (r"\d+(?:[.,:/-]\d+)*",),
}

# Every span has one of these. Most texts have none, so no pattern is searched for, or even compiled.
_MARKED = re.compile(rf"[\d%{{$<:@&\\_#~^`|\[{_PICTURES}\u20e3]|www\.")


class SpanMatch(NamedTuple):
    """A span of a text: its characters from `start` to `end`, which are `text`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The index of the first character, and the index after the last one."""
        return self.start, self.end


def find_spans(text: str, kinds: Iterable[str] = SPANS) -> list[tuple[str, str]]:
    """Find the spans of these kinds in order, without overlaps. Returns the kind and the text of each."""
    return [(span.kind, span.text) for span in iter_spans(text, kinds)]


def iter_spans(text: str, kinds: Iterable[str] = SPANS) -> Iterator[SpanMatch]:
    """Yield the spans of these kinds with their positions. If several begin at the same place, the longest counts."""
    included = frozenset(kinds)
    if not included or not _MARKED.search(text):
        return
    anywhere, patterns = _reader(included)
    match = anywhere.search(text)
    while match:
        start = match.start()
        candidates = ((one.end(), kind) for kind, pattern in patterns if (one := pattern.match(text, start)))
        end, kind = max(candidates, key=lambda candidate: candidate[0])
        yield SpanMatch(kind, text[start:end], start, end)
        match = anywhere.search(text, end)


@lru_cache
def _reader(kinds: frozenset[str]) -> tuple[re.Pattern[str], list[tuple[str, re.Pattern[str]]]]:
    """Make a pattern that finds where some span begins, and a pattern for each form of each kind."""
    patterns = [(kind, pattern) for kind in SPANS if kind in kinds for pattern in PATTERNS[kind]]
    anywhere = re.compile("|".join(f"(?:{pattern})" for _, pattern in patterns))
    return anywhere, [(kind, re.compile(pattern)) for kind, pattern in patterns]


def numbers_are_lost(source: str, target: str) -> bool:
    """Return True if `target` lacks a number of `source`, in any notation: 1,234.5, 1.234,5 or 1 234,5."""
    if not any(map(str.isdigit, source)):
        return False
    numbers = _numbers(source)
    target_numbers = _numbers(target)
    joined, target_joined = (Counter("".join(number) for number in some) for some in (numbers, target_numbers))
    parts, target_parts = (Counter(part for number in some for part in number) for some in (numbers, target_numbers))
    return bool(joined - target_joined) and bool(parts - target_parts)


def _numbers(text: str) -> list[list[str]]:
    """Find the numbers outside other spans, in ASCII digits, each divided at its separators."""
    numbers = [span for kind, span in find_spans(text) if kind == "numbers"]
    return [["".join(str(int(figure)) for figure in part) for part in re.findall(r"\d+", one)] for one in numbers]


Untranslatable = Literal["urls", "emails", "numbers", "signs"]


def untranslatable(text: str) -> Untranslatable | None:
    """Return the kind of `text` if nothing in it needs translation, otherwise None.

    "numbers" have digits and no letters (a date, 3 %). "signs" have neither (an emoji, an ellipsis).
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
    """How often texts of one kind occurred in sources, and how often the target had the same text."""

    seen: int = 0
    same: int = 0

    def __post_init__(self) -> None:
        require_whole("a count of copies", self.seen, least=0)
        require_whole("a count of copies", self.same, least=0)

    def note(self, same: bool) -> None:
        """Count one more occurrence. `same` says whether the target had the same text."""
        self.seen += 1
        self.same += same


def is_sign(character: str) -> bool:
    """Return True if a character is punctuation, a symbol or a private character."""
    category = unicodedata.category(character)
    return category[0] in "PS" or category == "Co"


# Punctuation that is normal in any text, even if few training sources have it.
ORDINARY = frozenset(".,;:!?…'\"()-–—‘’“”/%&")
# More ordinary signs of some languages, for models without statistics of their training pairs.
_PUNCTUATION = {
    "«»‹›": "af ar az be bg br bs ca cs da de el eo es et eu fa fi fr fur gl hr hu hy is it ka kk ky la lt lv mk nb nn "
    "no oc pl pt rm ro ru sc sk sl sq sr sv tr uk uz vi",
    "„‚": "af be bg bs cs da de et fi hr hu is ka la lt lv mk nl pl ro ru sk sl sq sr sv uk",
    "¿¡": "ast es gl",
    "·": "ca oc",
    "№": "be bg kk ky mk ru sr uk uz",
    "。、，．：；？！（）「」『』《》〈〉【】〔〕・·～〜": "cmn ja ko yue zh",
}
_OF_SCRIPTS = range(0x370, 0x2000)  # from Greek to the last alphabets; includes the punctuation of these scripts
# $5, 5 €: an amount; €name€ would be a name.
AMOUNT = re.compile(r"[$£¥\u20a0-\u20cf][ \xa0\u202f]?\d|\d[ \xa0\u202f]?[$£¥\u20a0-\u20cf]")
ENOUGH = 10  # occurrences; with fewer, a kind is judged by other counts
NEARLY_ALWAYS = 0.9  # a kind is copied if targets copied at least this share of whole sources
OFTEN = 1 / 3  # the share for words inside sources; "2 dogs" is often "zwei Hunde"
AROUND = ".,;:!?()\"'"  # punctuation around a word
_MARKED_KINDS = ("tags", "placeholders", "emoji")
VALUES = "values"  # the numbers of a source, in whatever form the target writes them


@dataclass(frozen=True, slots=True)
class CopyStatistics:
    """How often training pairs copy text of the kinds that need no translation.

    `alone` counts sources that consist only of such text. `inside` counts words of this kind in other sources, and also
    placeholders, tags and emoji. Under `VALUES` it counts sources with numbers; such a source counts as copied if its
    target has all of them. `signs` are the signs that occur in at least one of 1,000 sources, sorted, or "" if signs
    were not counted.
    """

    alone: dict[str, CopyCount] = field(default_factory=dict)
    inside: dict[str, CopyCount] = field(default_factory=dict)
    signs: str = ""

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], *, limit: int = 100_000) -> "CopyStatistics":
        """Compute the statistics of the first `limit` pairs of a source and a target."""
        statistics = cls()
        sources = 0
        characters = Counter[str]()
        for source, target in islice(pairs, limit):
            sources += 1
            characters.update(set(source))
            if kind := untranslatable(source):
                statistics.alone.setdefault(kind, CopyCount()).note(source.strip() == target.strip())
            else:
                for word in source.split():
                    bare = word.strip(AROUND) or word
                    if kind := untranslatable(bare):
                        statistics.inside.setdefault(kind, CopyCount()).note(bare in target)
                for name, span in find_spans(source, _MARKED_KINDS):
                    statistics.inside.setdefault(name, CopyCount()).note(span in target)
                if any(map(str.isdigit, source)):
                    statistics.inside.setdefault(VALUES, CopyCount()).note(not numbers_are_lost(source, target))
        known = (one for one, count in characters.items() if is_sign(one) and 1000 * count >= sources)
        return replace(statistics, signs="".join(sorted(known)))

    def known_signs(self, language: str | None) -> str:
        """Return the signs of ordinary text: those counted or, if none were counted, the usual signs of the language.

        A language of None means strings that are not in a language, for which only counted signs are known.
        """
        if language is None and not self.signs:
            return ""
        return "".join(sorted(ORDINARY | set(self.signs or _usual_signs(primary_language(language or "")))))

    def is_copied(self, text: str) -> bool:
        """Return True if `text` needs no translation and is of a kind that the training pairs often copied.

        A kind is judged by whole sources. If there are too few of these, it is judged by words inside sources, and if
        these are also too few, by all kinds together.
        """
        kind = untranslatable(text)
        if kind is None:
            return False
        everything = [*self.alone.values(), *(part for name, part in self.inside.items() if name != VALUES)]
        together = CopyCount(sum(part.seen for part in everything), sum(part.same for part in everything))
        for part, share in ((self.alone.get(kind), NEARLY_ALWAYS), (self.inside.get(kind), OFTEN), (together, OFTEN)):
            if part and part.seen >= ENOUGH:
                return part.same >= share * part.seen
        return False

    def is_copied_inside(self, kind: str) -> bool:
        """Return True unless the training pairs show that spans of this kind are not copied."""
        part = self.inside.get(kind, CopyCount())
        return part.seen < ENOUGH or part.same >= NEARLY_ALWAYS * part.seen

    def is_contradicted(self, text: str) -> bool:
        """Return True if some training pair translated a whole source of this kind instead of copying it."""
        part = self.alone.get(untranslatable(text) or "")
        return part is not None and part.same < part.seen


@cache
def _usual_signs(language: str) -> frozenset[str]:
    own = (sign for signs, languages in _PUNCTUATION.items() if language in languages.split() for sign in signs)
    return frozenset(own) | {chr(code) for code in _OF_SCRIPTS if unicodedata.category(chr(code))[0] == "P"}


# Copied as a whole: signs of these kinds are not part of the words around them.
APART = ("urls", "emails", "tags", "placeholders", "emoji")


def foreign_runs(text: str, known: Collection[str]) -> list[str]:
    """Find the runs of a text, between blanks, that contain a sign outside `known`, except inside copied spans.

    A run does not include the punctuation around it. If no sign is known, nothing is returned.
    """
    if not known or not any(is_sign(character) and character not in known for character in set(text)):
        return []
    apart = [*(span.bounds for span in iter_spans(text, APART)), *(match.span() for match in AMOUNT.finditer(text))]
    rest = blanked(text, apart, "a")
    runs = (match.span() for match in re.finditer(r"\S+", rest))
    return [
        text[start:end].strip(AROUND)
        for start, end in runs
        if any(is_sign(one) and one not in known for one in rest[start:end])
    ]


def blanked(text: str, places: Iterable[tuple[int, int]], sign: str = "\n") -> str:
    """Replace each character in these places, which may overlap, with a sign."""
    parts: list[str] = []
    position = 0
    for start, end in sorted(places):
        if end > position:
            start = max(start, position)
            parts += [text[position:start], sign * (end - start)]
            position = end
    return "".join([*parts, text[position:]])


# Scripts without blanks between words, in which a word may touch its neighbours.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_PLANES = 0x20000  # beyond this plane there are rare Chinese characters, and no letters of other scripts


def is_in_word(character: str) -> bool:
    """Return True if a character is a letter, mark or digit of a script that puts blanks between words."""
    category = unicodedata.category(character)
    return category[0] in "LMN" and not unicodedata.name(character, "").startswith(_UNSPACED)


@cache
def in_word_class() -> str:
    """Return a regular-expression class of the characters for which `is_in_word` is True, and the underscore."""
    inside = "".join("x" if is_in_word(chr(code)) else " " for code in range(_PLANES))
    ranges = (f"{chr(match.start())}-{chr(match.end() - 1)}" for match in re.finditer("x+", inside))
    return f"[{''.join(ranges)}_]"
