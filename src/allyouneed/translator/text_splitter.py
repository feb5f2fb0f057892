"""Normalize and check sentences, and cut them into the segments that a search translates."""

from collections import defaultdict
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
from .constraints import ConstraintBuilder, copied_kinds
from .segments import Segment, Segmenter
from .texts import checked_prefixes
from .translation import Translation, join_translations


@dataclass(frozen=True, slots=True)
class SplitSentences:
    """Sentences, divided into those that need no decoding (`ready`) and the segments of the others.

    For a copied or recased sentence, `as_is` may have segments of the unchanged text. Their translation is used if the
    model is sure of it.
    """

    texts: Sequence[str]
    ready: dict[int, Translation]  # by the index of the sentence
    segments: list[Segment]
    recased: frozenset[int] = frozenset()  # sentences whose translation is written in capitals
    blank: str = " "  # joins the translations of a sentence's segments

    def without(self, numbers: Iterable[int]) -> "SplitSentences":
        """Leave out the segments of some sentences."""
        left_out = set(numbers)
        return replace(self, segments=[one for one in self.segments if one.number not in left_out])

    def only(self, number: int) -> "SplitSentences":
        """Leave out all sentences but one."""
        return SplitSentences(
            [self.texts[number]],
            {0: self.ready[number]} if number in self.ready else {},
            [one._replace(number=0) for one in self.segments if one.number == number],
            frozenset({0} if number in self.recased else ()),
            self.blank,
        )

    def join(self, translations: Sequence[Translation | None], refuse: Callable[[Segment], None]) -> list[Translation]:
        """Join the translations of the segments into one for each sentence; None means a segment without a translation.

        If the segment was cancelled, the translation of its sentence is empty and flagged `cancelled`. Otherwise
        `refuse` is called with the segment; if it does not raise, the translation is empty.
        """
        by_text: list[list[Translation]] = [[] for _ in self.texts]
        parts: list[list[Segment]] = [[] for _ in self.texts]
        cancelled: set[int] = set()
        refused: dict[int, Segment] = {}
        for segment, translation in zip(self.segments, translations, strict=True):
            if segment.as_is:
                continue
            parts[segment.number].append(segment)
            if translation is not None:
                by_text[segment.number].append(translation)
            elif segment.request.is_cancelled():
                cancelled.add(segment.number)
            else:
                refused.setdefault(segment.number, segment)
        for number in cancelled:
            by_text[number] = [Translation(self.texts[number], "", flags=("cancelled",))]
        for number in refused.keys() - cancelled:
            refuse(refused[number])
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
        """Collect the translations of unchanged texts, if the model is sure of them."""
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
    """Write a translation in capitals, including its alternatives and the words of its alignment."""
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
    """Flag a joined translation if its spans are wrong as a whole. In a single part, a stray `%` may look harmless."""
    if "split" not in translation.flags or not parts[0].constraints:
        return translation
    source = " ".join(segment.text for segment in parts)
    if not parts[0].constraints.spans_differ(source, translation.text, prefix=parts[0].request.prefix):
        return translation
    return translation.flagged("wrong_spans")


MOST_CHARACTERS = 100_000  # in a text: thousands of sentences, or seconds of work
BYTE_ORDER_MARK = "\ufeff"  # sometimes left at the start of a text; no model knows it
Terms = Glossary | Mapping[str, str | Iterable[str]]


class TextSplitter:
    """Splits sentences for the model of a bundle.

    `longest` is the number of tokens that the model can read, and `limit` the number that a translation may have.
    """

    def __init__(self, bundle: Bundle, decode: DecodeConfig, glossary: Glossary, *, limit: int, longest: int) -> None:
        self._bundle = bundle
        self._decode = decode
        self._limit = limit
        self._normalize = bundle.normalization
        self._target_tokenizer = bundle.target_tokenizer
        self._constraints = self._constraint_builder(glossary)
        self._segmenter = Segmenter(
            bundle.source_tokenizer,
            longest_source=min(longest, bundle.longest_source or longest),
            max_length=longest,
            language=bundle.languages[0],
        )

    @property
    def longest_source(self) -> int:
        """The maximum number of tokens in a segment. A segment that cannot be cut may be longer."""
        return self._segmenter.longest_source

    @property
    def languages(self) -> tuple[str, str]:
        """The source and target languages as BCP 47 tags; "" if the bundle does not name them."""
        return self._bundle.languages

    def language_tag(self, text: str) -> str:
        """Return the tag of the target language at the start of a text, or "" if the model uses no tags."""
        return self._bundle.source_tokenizer.language_tag(text)

    def constraints(self, glossary: Terms | None) -> ConstraintBuilder | None:
        """Return the builder of constraints, with this glossary or the translator's; None if nothing is constrained."""
        return self._constraints if glossary is None else self._constraint_builder(as_glossary(glossary))

    def split(
        self,
        texts: Sequence[str],
        prefixes: Sequence[list[int]],
        constraints: ConstraintBuilder | None,
        *,
        on_refused: Callable[[InputError], None],
        is_cancelled: Callable[[int], bool] = never_cancelled,
    ) -> SplitSentences:
        """Split sentences into segments. The first segment of each sentence gets the ids of its prefix.

        `on_refused` is called with the error of a sentence that cannot be read; the `line` of the error counts
        sentences from 1.
        """
        normalized = [self._normalize(text.removeprefix(BYTE_ORDER_MARK)) for text in texts]
        ready = {
            number: same
            for number, (text, begin) in enumerate(zip(normalized, prefixes, strict=True))
            if (same := self._without_decoding(text, begin))
        }
        copies = self._bundle.copy_statistics
        case = self._bundle.case_statistics
        recased = {
            number: small
            for number, text in enumerate(normalized)
            if self._decode.recase and not prefixes[number] and number not in ready and case.is_unusual(text)
            if self._can_encode(small := case.to_sentence_case(text, _terms_with_capitals(text, constraints)))
        }
        remaining = ["" if number in ready else recased.get(number, text) for number, text in enumerate(normalized)]
        segments = self._segmenter.split(remaining, prefixes, 1, constraints, on_refused)
        doubtful = recased.keys() | {number for number in ready if copies.is_contradicted(normalized[number])}
        as_is = [text if number in doubtful else "" for number, text in enumerate(normalized)]
        segments += self._segments_as_is(as_is, prefixes, constraints)
        segments = [
            one._replace(request=one.request._replace(is_cancelled=partial(is_cancelled, one.number)))
            for one in segments
        ]
        return SplitSentences(texts, ready, segments, frozenset(recased), blank_between(self._bundle.languages[1]))

    def _can_encode(self, text: str) -> bool:
        try:
            self._bundle.source_tokenizer.encode(text)
        except InputError:
            return False
        return True

    def _segments_as_is(
        self, texts: Sequence[str], prefix_ids: Sequence[list[int]], constraints: ConstraintBuilder | None
    ) -> list[Segment]:
        """Make segments of the unchanged texts, except texts with characters that the model does not know."""
        unknown = self._bundle.source_tokenizer.unk_id
        segments = self._segmenter.split(texts, prefix_ids, 1, constraints, lambda _: None)
        unread = {segment.number for segment in segments if unknown in segment.request.source}
        return [segment._replace(as_is=True) for segment in segments if segment.number not in unread]

    def refusal(self, segment: Segment, line: int) -> InputError:
        """Make the error for a segment without a hypothesis, in the text on line `line`."""
        if not segment.request.constraints:
            return InputError(
                f"the search found no translation of {segment.text!r}, because the model's log-probabilities are not "
                "numbers: its weights are damaged, or its training failed",
                line=line,
            )
        return InputError(
            f"no translation of {segment.text!r} contains all that it must within {self._limit} tokens",
            line=line,
        )

    def _constraint_builder(self, glossary: Glossary) -> ConstraintBuilder | None:
        named = self._decode.copy_spans
        kinds = named or copied_kinds(self._bundle.copy_statistics)
        if not glossary and not kinds:
            return None
        return ConstraintBuilder(
            self._target_tokenizer, glossary.normalized(self._normalize), kinds, is_required=bool(named)
        )

    def encode_prefixes(self, prefix: str | Sequence[str], count: int, first_line: int) -> list[list[int]]:
        """Encode prefixes: one for all texts, or one for each. If there are several, an error names the line."""
        known: dict[str, list[int]] = {}
        prefixes = checked_prefixes(prefix, count)
        for number, one in enumerate(prefixes):
            if one not in known:
                line = None if isinstance(prefix, str) else first_line + number
                known[one] = self._encode_prefix(self._normalize(one), line)
        return [known[one] for one in prefixes]

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
                "including its end token; give a shorter prefix",
                line=line,
            )
        return ids

    def _without_decoding(self, text: str, prefix: list[int]) -> Translation | None:
        if not text or text.isspace():
            return Translation(text, "")
        if not prefix and self._decode.copy_untranslatable and self._bundle.copy_statistics.is_copied(text):
            return Translation(text, text.strip(), flags=("copied",))
        return None


def length_refusal(text: str, line: int) -> InputError | None:
    """Return an error if a text is too long to split, before any work on it; otherwise None."""
    if len(text) <= MOST_CHARACTERS:
        return None
    return InputError(
        f"{text[:30]!r}… has {len(text):,} characters; a text has at most {MOST_CHARACTERS:,}. Put each sentence on a "
        "line of its own, or break long lines: fold -s -w 1000 FILE",
        line=line,
    )


def as_glossary(terms: Terms) -> Glossary:
    """Make a glossary of terms, unless they already are one."""
    if isinstance(terms, Glossary):
        return terms
    if not isinstance(terms, Mapping):
        raise ConfigError(f"a glossary must be a dictionary or Glossary.read(file); got {terms!r:.60}")
    return Glossary(terms)


def _terms_with_capitals(text: str, constraints: ConstraintBuilder | None) -> Collection[tuple[int, int]]:
    """Return where a text has glossary terms that match only as it is capitalized now."""
    return set(constraints.spans(text)) - set(constraints.spans(text.lower())) if constraints else ()
