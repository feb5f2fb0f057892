"""What the translation of a text must contain, as ids: translations of glossary terms, and copied spans."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from ..decode import Limit, Order, PhraseConstraint
from ..errors import InputError
from ..text.glossary import Glossary
from ..text.spans import iter_spans
from ..text.tokenizer import Tokenizer
from .agreement import SIGNS, extra_spans, ordered_spans, span_signs, spans_differ, stray_signs

_CARRIERS = ("", "\n", "(", "a ")  # what may stand before a phrase, and change its first token


class ConstraintBuilder:
    """Finds in a text the glossary terms and copied spans that its translation must contain.

    `keep` names the kinds of spans (urls, emails, tags, placeholders, emoji, numbers) that are copied
    untouched. A term inside such a span counts as part of the span, and a number inside a term as part of the term.
    """

    def __init__(self, tokenizer: Tokenizer, glossary: Glossary, keep: Iterable[str]) -> None:
        self._tokenizer, self._glossary, self._keep = tokenizer, glossary, tuple(keep)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in a text the terms and copied spans are: (start, end)."""
        return [span.bounds for span in iter_spans(text, self._keep)] + self._glossary.spans(text)

    def required_texts(self, text: str) -> list[tuple[str, ...]]:
        """For each term and copied span of `text`, the texts of which the translation must contain one."""
        spans = list(iter_spans(self._without_terms(text), self._keep))
        rest = _blanked(text, [span.bounds for span in spans])
        return [(span.text,) for span in spans] + [translations for _, translations in self._glossary.find(rest)]

    def _without_terms(self, text: str) -> str:
        """The text with line feeds in place of terms that contain numbers: their translations replace these, too."""
        spans = list(iter_spans(text, self._keep))

        def absorbs(start: int, end: int) -> bool:
            inside = [span for span in spans if span.start < end and start < span.end]
            return bool(inside) and all(
                span.kind == "numbers" and start <= span.start and span.end <= end and span.text != text[start:end]
                for span in inside
            )

        return _blanked(text, [term for term in self._glossary.spans(text) if absorbs(*term)])

    def spans_differ(self, source: str, target: str, *, prefix: Sequence[int] = ()) -> bool:
        """Whether a translation has other kept spans than its source, or in an order that breaks them."""
        return spans_differ(self._without_terms(source), target, self._keep, also=self._also(source, prefix))

    def extra_spans(self, source: str, target: str, *, prefix: Sequence[int] = ()) -> list[tuple[int, int]]:
        """Where in a translation kept spans stand that its source does not have, or not as often: (start, end)."""
        return extra_spans(self._without_terms(source), target, self._keep, also=self._also(source, prefix))

    def sign_limits(self, source: str, extra: str, *, prefix: Sequence[int] = ()) -> list[Limit]:
        """For each sign of the placeholders and tags of `source` and `extra`, the ids with it and its highest count."""
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
        """The spans whose order is that of the source, as ids."""
        return [
            [tuple(self._spellings(span)) for span in spans]
            for spans in ordered_spans(source, self._keep)
            if len(set(spans)) > 1
        ]

    def _also(self, source: str, prefix: Sequence[int]) -> list[str]:
        """The texts that may add spans to a translation: translations of glossary terms, and the prefix."""
        terms = [text for _, translations in self._glossary.find(source) for text in translations]
        return [*terms, self._tokenizer.decode(prefix)]

    def build(self, text: str) -> list[PhraseConstraint]:
        """What `required_texts` names, as phrases of ids. Refuses a text that the vocabulary cannot spell."""
        return [
            PhraseConstraint(tuple(spelling for required in texts for spelling in self._spellings(required)), count)
            for texts, count in Counter(self.required_texts(text)).items()
        ]

    def _spellings(self, required: str) -> list[tuple[int, ...]]:
        """The ids of a text, as the vocabulary writes it, after a blank, and directly after a newline or a bracket."""
        tokenizer = self._tokenizer
        try:
            ids = tokenizer.encode(required)[1:-1]
        except InputError:
            ids = []
        written = tokenizer.decode(ids).strip()
        if not written or tokenizer.unk_id in ids:
            raise InputError(f"{required!r} must stand in the translation, but the vocabulary cannot spell it")
        spellings = []
        for carrier in _CARRIERS:
            try:
                before, whole = tokenizer.encode(carrier)[1:-1], tokenizer.encode(carrier + required)[1:-1]
            except InputError:
                if not carrier:
                    raise
                continue  # a vocabulary without this character
            spelling = tuple(whole[len(before) :])
            if whole[: len(before)] == before and tokenizer.decode(spelling).strip() == written:
                spellings.append(spelling)
        return list(dict.fromkeys(spellings))


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with line feeds in these places, as many as the characters there."""
    for start, end in spans:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text
