"""Texts → `SplitTexts`: normalized, checked, and cut into the segments that a search translates."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..bundle import Bundle
from ..config import DecodeConfig
from ..decode import never_cancelled
from ..errors import ConfigError, InputError
from ..text.glossary import Glossary
from ..text.letter_case import to_capitals
from ..text.sentences import blank_between
from .constraints import ConstraintBuilder
from .segments import Segment, Segmenter
from .texts import checked_prefixes
from .translation import Translation, join_translations


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Some texts, the translations of those that need no decoding, and the segments of the others.

    A text that is copied or recased may have segments `as_is` besides: what the model is sure of is its answer.
    """

    texts: Sequence[str]
    ready: dict[int, Translation]  # by the index of the text
    segments: list[Segment]
    recased: frozenset[int] = frozenset()  # the texts whose translations are to be written in capitals
    blank: str = " "  # between the translations of the segments of a text

    def counting_texts(self, on_progress: Callable[[int], None]) -> Callable[[Sequence[int]], None]:
        """A function of the indices of segments that are translated, which passes on how many texts that finishes.

        `on_progress` is called with the number of texts without segments at once.
        """
        left = Counter(segment.number for segment in self.segments)
        if ready := len(self.texts) - len(left):
            on_progress(ready)

        def count(translated: Sequence[int]) -> None:
            numbers = [self.segments[i].number for i in translated]
            left.subtract(numbers)
            if finished := sum(left[number] == 0 for number in set(numbers)):
                on_progress(finished)

        return count

    def join(
        self,
        translations: Sequence[Translation | None],
        refuse: Callable[[Segment], InputError],
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Translation]:
        """The translation of each text, from those of the segments; None is a segment without one.

        If its text was cancelled, the translation of the text is empty and flagged so. Otherwise the error that
        `refuse` makes of the segment is raised, or `on_refused` is called with it, and the text stays empty.
        """
        by_text: list[list[Translation]] = [[] for _ in self.texts]
        parts: list[list[Segment]] = [[] for _ in self.texts]
        cancelled: set[int] = set()
        refused: dict[int, InputError] = {}
        for segment, translation in zip(self.segments, translations, strict=True):
            if segment.as_is:
                continue
            parts[segment.number].append(segment)
            if translation is not None:
                by_text[segment.number].append(translation)
            elif segment.request.is_cancelled():
                cancelled.add(segment.number)
            else:
                refused.setdefault(segment.number, refuse(segment))
        for number in cancelled:
            by_text[number] = [Translation(self.texts[number], "", flags=("cancelled",))]
        for number, error in refused.items():
            if number in cancelled:
                continue
            if on_refused is None:
                raise error
            on_refused(error)
            by_text[number] = []
        joined = [
            replace(self.ready[number], source=text)
            if number in self.ready
            else _checked(join_translations(text, by_text[number], self.blank), parts[number])
            for number, text in enumerate(self.texts)
        ]
        answers = self._answers(translations)
        return [
            answers.get(number) or (_in_capitals(one) if number in self.recased else one)
            for number, one in enumerate(joined)
        ]

    def _answers(self, translations: Sequence[Translation | None]) -> dict[int, Translation]:
        """The translations, of texts as they are, that the model is sure of."""
        parts = defaultdict[int, list[tuple[Segment, Translation | None]]](list)
        for segment, translation in zip(self.segments, translations, strict=True):
            if segment.as_is:
                parts[segment.number].append((segment, translation))
        joined = {
            number: _checked(
                join_translations(self.texts[number], [one for _, one in some if one], self.blank),
                [s for s, _ in some],
            )
            for number, some in parts.items()
            if all(one for _, one in some)
        }
        return {number: one for number, one in joined.items() if one.is_sure}


def _in_capitals(translation: Translation) -> Translation:
    """A translation in capitals, with its alternatives and the words of its alignment."""
    aligned = translation.alignment
    return replace(
        translation,
        text=to_capitals(translation.text),
        alternatives=tuple(map(_in_capitals, translation.alternatives)),
        alignment=aligned
        and aligned._replace(
            source=tuple(map(to_capitals, aligned.source)), target=tuple(map(to_capitals, aligned.target))
        ),
    ).flagged("recased")


def _checked(translation: Translation, parts: Sequence[Segment]) -> Translation:
    """A joined translation, flagged if its spans are wrong as a whole: a stray `%` may do no harm in its part alone."""
    if "split" not in translation.flags or not parts[0].constraints:
        return translation
    source = " ".join(segment.text for segment in parts)
    if not parts[0].constraints.spans_differ(source, translation.text, prefix=parts[0].request.prefix):
        return translation
    return translation.flagged("wrong_spans")


MOST_CHARACTERS = 100_000  # of a text: thousands of sentences, or seconds of work
BYTE_ORDER_MARK = "\ufeff"  # what may be left of one at the start of a text, which no model knows
Terms = Glossary | Mapping[str, str | Iterable[str]]


class TextSplitter:
    """Splits texts for the model of a bundle.

    In tokens, `longest` is the most that the model can read, and `limit` the most that a translation may have.
    """

    def __init__(self, bundle: Bundle, decode: DecodeConfig, glossary: Glossary, *, limit: int, longest: int) -> None:
        self._bundle, self._decode, self._limit = bundle, decode, limit
        self._normalize, self._target_tokenizer = bundle.normalization, bundle.target_tokenizer
        self._constraints = self._constraint_builder(glossary)
        self._segmenter = Segmenter(
            bundle.source_tokenizer,
            longest_source=min(longest, bundle.longest_source or longest),
            max_length=longest,
            language=bundle.languages[0],
        )

    @property
    def longest_source(self) -> int:
        """The most tokens that a segment has unless there is nowhere to cut it."""
        return self._segmenter.longest_source

    def split(
        self,
        texts: Sequence[str],
        *,
        prefix: str | Sequence[str] = "",
        glossary: Terms | None = None,
        first_line: int = 1,
        on_refused: Callable[[InputError], None] | None = None,
        is_cancelled: Callable[[int], bool] = never_cancelled,
    ) -> SplitTexts:
        """As `Translator.split`."""
        texts_to_split = [
            "" if _is_refused(text, first_line + number, on_refused) else text for number, text in enumerate(texts)
        ]
        normalized = [self._normalize(text.removeprefix(BYTE_ORDER_MARK)) for text in texts_to_split]
        prefixes = checked_prefixes(prefix, len(texts))
        prefix_ids = self._encode_prefixes(prefixes, None if isinstance(prefix, str) else first_line)
        ready = {
            number: same
            for number, (text, begin) in enumerate(zip(normalized, prefixes, strict=True))
            if (same := self._without_decoding(text, begin))
        }
        copies, case = self._bundle.copy_statistics, self._bundle.case_statistics
        constraints = self._constraints if glossary is None else self._constraint_builder(as_glossary(glossary))
        recased = {
            number: small
            for number, text in enumerate(normalized)
            if self._decode.recase and not prefixes[number] and number not in ready and case.is_unusual(text)
            if self._can_encode(small := case.to_sentence_case(text, _terms_with_capitals(text, constraints)))
        }
        remaining = ["" if number in ready else recased.get(number, text) for number, text in enumerate(normalized)]
        segments = self._segmenter.split(remaining, prefix_ids, first_line, constraints, on_refused)
        doubtful = recased.keys() | {number for number in ready if copies.is_contradicted(normalized[number])}
        as_is = [text if number in doubtful else "" for number, text in enumerate(normalized)]
        segments += self._segments_as_is(as_is, prefix_ids, constraints)
        segments = [
            one._replace(request=one.request._replace(is_cancelled=partial(is_cancelled, one.number)))
            for one in segments
        ]
        return SplitTexts(texts, ready, segments, frozenset(recased), blank_between(self._bundle.languages[1]))

    def _can_encode(self, text: str) -> bool:
        try:
            self._bundle.source_tokenizer.encode(text)
        except InputError:
            return False
        return True

    def _segments_as_is(
        self, texts: Sequence[str], prefix_ids: Sequence[list[int]], constraints: ConstraintBuilder | None
    ) -> list[Segment]:
        """The segments of those texts that the model can read: it has no answer to what is unknown to it."""
        unknown = self._bundle.source_tokenizer.unk_id
        segments = self._segmenter.split(texts, prefix_ids, 1, constraints, lambda _: None)
        unread = {segment.number for segment in segments if unknown in segment.request.source}
        return [segment._replace(as_is=True) for segment in segments if segment.number not in unread]

    def refusal(self, segment: Segment, first_line: int) -> InputError:
        """The error of a segment for which the search found no hypothesis."""
        if not segment.request.constraints:
            return InputError(
                f"the search found no translation of {segment.text!r}, because the model's log-probabilities are not "
                "numbers: its weights are damaged, or its training failed",
                line=first_line + segment.number,
            )
        return InputError(
            f"no translation of {segment.text!r} contains all that it must within {self._limit} tokens",
            line=first_line + segment.number,
        )

    def _constraint_builder(self, glossary: Glossary) -> ConstraintBuilder | None:
        if not glossary and not self._decode.copy_spans:
            return None
        return ConstraintBuilder(self._target_tokenizer, glossary.normalized(self._normalize), self._decode.copy_spans)

    def _encode_prefixes(self, prefixes: Sequence[str], first_line: int | None) -> list[list[int]]:
        """The ids of prefixes, of which several may be equal. One that is refused is so by its line, if they have."""
        known: dict[str, list[int]] = {}
        for number, prefix in enumerate(prefixes):
            if prefix not in known:
                line = None if first_line is None else first_line + number
                known[prefix] = self._encode_prefix(self._normalize(prefix), line)
        return [known[prefix] for prefix in prefixes]

    def _encode_prefix(self, prefix: str, line: int | None) -> list[int]:
        try:
            ids = self._target_tokenizer.encode(prefix)[1:-1] if prefix else []
        except InputError as error:
            whose = "every translation" if line is None else "this translation"
            raise InputError(f"the prefix of {whose}: {error}", line=line) from error
        if self._target_tokenizer.unk_id in ids:
            raise InputError(
                f"the vocabulary cannot spell all of the prefix {prefix!r}; leave out what it cannot", line=line
            )
        if len(ids) >= self._limit:
            raise InputError(
                f"the prefix has {len(ids)} tokens, but a translation has at most {self._limit}, "
                "its end token included; give a shorter one",
                line=line,
            )
        return ids

    def _without_decoding(self, text: str, prefix: str) -> Translation | None:
        if not text or text.isspace():
            return Translation(text, "")
        if not prefix and self._decode.copy_untranslatable and self._bundle.copy_statistics.is_copied(text):
            return Translation(text, text.strip(), flags=("copied",))
        return None


def _is_refused(text: str, line: int, on_refused: Callable[[InputError], None] | None) -> bool:
    """Refuse a text that is too long to be split, before any work on it."""
    if len(text) <= MOST_CHARACTERS:
        return False
    error = InputError(
        f"{text[:30]!r}… has {len(text):,} characters; a text has at most {MOST_CHARACTERS:,}. Put each sentence on a "
        "line of its own, or break long lines: fold -s -w 1000 FILE",
        line=line,
    )
    if on_refused is None:
        raise error
    on_refused(error)
    return True


def as_glossary(terms: Terms) -> Glossary:
    """The glossary of some terms."""
    if isinstance(terms, Glossary):
        return terms
    if not isinstance(terms, Mapping):
        raise ConfigError(f"a glossary must be a dictionary or Glossary.read(file); got {terms!r:.60}")
    return Glossary(terms)


def _terms_with_capitals(text: str, constraints: ConstraintBuilder | None) -> Collection[tuple[int, int]]:
    """Where in a text the glossary terms are that match only in these letters."""
    return set(constraints.spans(text)) - set(constraints.spans(text.lower())) if constraints else ()
