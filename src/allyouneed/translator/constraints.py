"""The texts that a translation must contain (glossary translations and copied spans), and checks of translations."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from ..decode import Limit, Order
from ..errors import InputError
from ..text.glossary import Glossary
from ..text.spans import AROUND, CopyStatistics, SpanMatch, blanked, find_spans, iter_spans, numbers_are_lost
from ..text.tokenizer import Tokenizer
from .constraint_state import PhraseConstraint
from .placeholders import signed_runs

# An argument is bound by its position in the message unless it has a name or a number.
BY_PLACE = re.compile(r"%(?![%({]|<(?!PRI)|L?\d+\Z|\d+\$|\w+%|#@)|\{[}:!]")
OF_SIGNS = ("tags", "placeholders")
SIGNS = frozenset("%{}<>")
# Characters of placeholders that `iter_spans` does not know; ordinary sentences hardly ever contain them.
CODE_SIGNS = "%{}<>$@\\|^=_[]#~`*"
# Matches «Name», which mail merge fills in (or a quotation, whose quotation marks may change), and words with a sign
# where sentences have none: /etc/passwd, .bashrc, --help; %%name%%, std::list; open(), Ctrl+C. A word that starts with
# a dash is left alone: it may be direct speech.
CODE_RUN = re.compile(
    r"[«‹]\w++[»›]|(?<!\S)(?:-{2,}|[/.:;!?=+&])(?=[^\W\d_])\S++|(?<!\S)[^\s/:%=+&]*+(?://|::|%%|==|\+\+|&&)(?=\w)\S++"
    r"|(?<!\S)\w[\w.]*+\(\)|(?<!\S)[^\W\d_]++\+[^\W_]\S*+"
)
TAG_NAME = re.compile(r"</?\s*([^\s/>]+)")
UNPAIRED = {"br", "hr", "img", "input", "link", "meta", "wbr"}


def spans_differ(source: str, target: str, kinds: Iterable[str], *, also: Iterable[str] = ()) -> bool:
    """Return True if the spans of `target` are not the spans of `source`, or are in an order that breaks them.

    `kinds` names the kinds of spans. Each span must occur as often as in `source`; the spans of texts in `also` may be
    added. Arguments without a name or a number (`%s … %d`, `{}`) must keep their order. If the tags of `source` are
    properly nested, `target` must nest them properly too, in any order; otherwise they must keep their order.
    """
    kinds = tuple(kinds)
    there = find_spans(source, kinds)
    here = find_spans(target, kinds)
    missing = Counter(there) - Counter(here)
    extra = extra_spans(source, target, kinds, also=also)
    if missing or extra:
        return True
    (arguments, tags), (arguments_here, tags_here) = ordered_spans(source, kinds), ordered_spans(target, kinds)
    wrong_tags = not _is_nested(tags_here) if _is_nested(tags) else tags != tags_here
    return arguments != arguments_here or wrong_tags


def codes_differ(source: str, target: str) -> bool:
    """Return True if `target` lost a number or a code word of `source`, or has another count of some code sign.

    Code signs are characters that ordinary sentences hardly ever contain, such as `[`, `<` and `#`.
    """
    runs = [*(run.rstrip(AROUND) for run in CODE_RUN.findall(source)), *signed_runs(source)]
    signs_differ = any(source.count(sign) != target.count(sign) for sign in CODE_SIGNS)
    return signs_differ or runs_are_lost(runs, source, target) or numbers_are_lost(source, target)


def runs_are_lost(runs: Iterable[str], source: str, target: str) -> bool:
    """Return True if a run occurs less often in `target` than in `source`, ignoring blanks and the width of signs."""
    squeezed, target = (_squeezed(text) for text in (source, target))
    return any(squeezed.count(run) > target.count(run) for run in map(_squeezed, runs))


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def extra_spans(source: str, target: str, kinds: Iterable[str], *, also: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Find the spans of `target` that `source` and the texts in `also` do not have, or not as often: (start, end).

    The signs in the spans of `source`, such as the `%` of `%s`, also count by themselves, because a program that reads
    `% s` after `%s` takes both for arguments.
    """
    kinds = tuple(kinds)
    left = Counter[str]()
    for text in (source, *also):
        left.update(span.text for span in iter_spans(text, kinds))
        left.update(sign for _, sign in stray_signs(text, kinds))
    signs = span_signs(source, kinds)
    stray = [(index, index + 1) for index, sign in stray_signs(target, kinds) if sign in signs]
    extra = []
    for start, end in [*(span.bounds for span in iter_spans(target, kinds)), *stray]:
        left[target[start:end]] -= 1
        if left[target[start:end]] < 0:
            extra.append((start, end))
    return extra


def span_signs(text: str, kinds: Iterable[str]) -> set[str]:
    """Return the marker characters (`%{}<>`) in the placeholders and tags of a text."""
    return {sign for kind, span in find_spans(text, kinds) if kind in OF_SIGNS for sign in span} & SIGNS


def stray_signs(text: str, kinds: Iterable[str]) -> list[tuple[int, str]]:
    """Find the marker characters outside all spans, as (index, character)."""
    inside = {index for span in iter_spans(text, kinds) for index in range(*span.bounds)}
    return [(index, sign) for index, sign in enumerate(text) if sign in SIGNS and index not in inside]


def ordered_spans(text: str, kinds: Iterable[str]) -> tuple[list[str], list[str]]:
    """Find the spans whose order matters: arguments without a name or a number, and tags."""
    spans = find_spans(text, kinds)
    arguments = [span for kind, span in spans if kind == "placeholders" and BY_PLACE.match(span)]
    return arguments, [span for kind, span in spans if kind == "tags"]


def _is_nested(tags: Sequence[str]) -> bool:
    open_tags: list[str] = []
    for tag in tags:
        match = TAG_NAME.match(tag)
        name = match.group(1) if match else ""
        if tag.startswith("</"):
            if not open_tags or open_tags.pop() != name:
                return False
        elif not tag.endswith("/>") and name.lower() not in UNPAIRED:
            open_tags.append(name)
    return not open_tags


# Spans of these kinds are copied by default, unless the training pairs show that they should not be.
_COPIED = ("urls", "emails", "placeholders", "emoji")


def copied_kinds(statistics: CopyStatistics) -> tuple[str, ...]:
    """Return the kinds of spans that a translation must copy if no setting names the kinds."""
    return tuple(kind for kind in _COPIED if statistics.is_copied_inside(kind))


CARRIERS = ("", "\n", "(", "a ")  # contexts in which the first token of a phrase may differ


class ConstraintBuilder:
    """Finds the glossary terms and copied spans in a text, which its translation must contain.

    `keep` names the kinds of spans (urls, emails, tags, placeholders, emoji, numbers) that are copied unchanged. A term
    inside such a span belongs to the span, and a number inside a term belongs to the term.
    """

    def __init__(
        self, tokenizer: Tokenizer, glossary: Glossary, keep: Iterable[str], *, is_required: bool = True
    ) -> None:
        """Store the arguments. Set `is_required` if a setting names the kinds of spans.

        A span that the vocabulary cannot spell is then refused; without `is_required`, it is not copied.
        """
        self._tokenizer = tokenizer
        self._glossary = glossary
        self._keep = tuple(keep)
        self.is_required = is_required

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the terms and copied spans of a text are: (start, end)."""
        return [span.bounds for span in iter_spans(text, self._keep)] + self._glossary.spans(text)

    def required_texts(self, text: str) -> list[tuple[str, ...]]:
        """List, for each term and copied span of `text`, the texts of which the translation must contain one."""
        spans = self._copied(text)
        return [(span.text,) for span in spans] + self._terms(text, spans)

    def _copied(self, text: str) -> list[SpanMatch]:
        return list(iter_spans(self._without_terms(text), self._keep))

    def _terms(self, text: str, spans: Sequence[SpanMatch]) -> list[tuple[str, ...]]:
        rest = blanked(text, [span.bounds for span in spans])
        return [translations for _, translations in self._glossary.find(rest)]

    def _without_terms(self, text: str) -> str:
        """Replace terms that contain numbers with line feeds, because their translations also contain the numbers."""
        spans = list(iter_spans(text, self._keep))

        def absorbs(start: int, end: int) -> bool:
            first = bisect_right(spans, start, key=lambda span: span.end)
            inside = spans[first : bisect_left(spans, end, key=lambda span: span.start)]
            return bool(inside) and all(
                span.kind == "numbers" and start <= span.start and span.end <= end and span.text != text[start:end]
                for span in inside
            )

        return blanked(text, [term for term in self._glossary.spans(text) if absorbs(*term)])

    def spans_differ(self, source: str, target: str, *, prefix: Sequence[int] = ()) -> bool:
        """Return True if the kept spans of a translation differ from its source's, or their order breaks them."""
        return spans_differ(self._without_terms(source), target, self._keep, also=self._also(source, prefix))

    def extra_spans(self, source: str, target: str, *, prefix: Sequence[int] = ()) -> list[tuple[int, int]]:
        """Find the kept spans of a translation that its source does not have, or not as often: (start, end)."""
        return extra_spans(self._without_terms(source), target, self._keep, also=self._also(source, prefix))

    def sign_limits(self, source: str, extra: str, *, prefix: Sequence[int] = ()) -> list[Limit]:
        """Limit how often each sign of placeholders and tags, such as `{` and `<`, may occur in a translation.

        It may occur as often as in `source` and `extra` together.
        """
        required = self.required_texts(source)
        limits: list[Limit] = []
        for sign in span_signs(source, self._keep) | span_signs(extra, self._keep):
            count = sum(max(text.count(sign) for text in texts) for texts in required)
            count += sum(stray == sign for _, stray in stray_signs(source, self._keep))
            count += self._tokenizer.decode(prefix).count(sign)
            weights = {i: piece.count(sign) for i, piece in self._pieces_with_signs.items() if sign in piece}
            limits.append((weights, count))
        return limits

    @cached_property
    def _pieces_with_signs(self) -> dict[int, str]:
        tokenizer = self._tokenizer
        special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
        pieces = enumerate(tokenizer.pieces(range(len(tokenizer))))
        return {i: piece for i, piece in pieces if i not in special and SIGNS & set(piece)}

    def orders(self, source: str) -> list[Order]:
        """Return the spans that must keep the order of the source, as ids."""
        return [
            [tuple(self._spellings(span)) for span in spans]
            for spans in ordered_spans(source, self._keep)
            if len(set(spans)) > 1 and all(map(self._can_spell, spans))
        ]

    def _also(self, source: str, prefix: Sequence[int]) -> list[str]:
        """Return the texts that may add spans to a translation: translations of glossary terms, and the prefix."""
        terms = [text for _, translations in self._glossary.find(source) for text in translations]
        return [*terms, self._tokenizer.decode(prefix)]

    def build(self, text: str, *, terms_only: bool = False) -> list[PhraseConstraint]:
        """Turn the texts of `required_texts` into phrases of ids; with `terms_only`, only the glossary terms.

        If the vocabulary cannot spell a text, refuses it if it is required; otherwise leaves it out.
        """
        spans = self._copied(text)
        required = self._terms(text, spans)
        if not terms_only:
            texts = [span.text for span in spans]
            required += [(one,) for one in texts if self.is_required or self._can_spell(one)]
        return [
            PhraseConstraint(tuple(spelling for required in texts for spelling in self._spellings(required)), count)
            for texts, count in Counter(required).items()
        ]

    def _can_spell(self, text: str) -> bool:
        try:
            self._spellings(text)
        except InputError:
            return False
        return True

    def _spellings(self, required: str) -> list[tuple[int, ...]]:
        """Return the ids of a text in three contexts: after a blank, after a line feed and after a bracket."""
        tokenizer = self._tokenizer
        try:
            ids = tokenizer.encode(required)[1:-1]
        except InputError:
            ids = []
        written = tokenizer.decode(ids).strip()
        if not written or tokenizer.unk_id in ids:
            raise InputError(f"{required!r} must be in the translation, but the vocabulary cannot spell it")
        spellings = []
        for carrier in CARRIERS:
            try:
                before = tokenizer.encode(carrier)[1:-1]
                whole = tokenizer.encode(carrier + required)[1:-1]
            except InputError:
                if not carrier:
                    raise
                continue  # the vocabulary does not have this character
            spelling = tuple(whole[len(before) :])
            if whole[: len(before)] == before and tokenizer.decode(spelling).strip() == written:
                spellings.append(spelling)
        return list(dict.fromkeys(spellings))
