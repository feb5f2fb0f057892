"""Texts → `SplitTexts`: normalized, checked, and cut into the segments that a search translates."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..bundle import Bundle
from ..config import DecodeConfig
from ..decode import never_cancelled
from ..errors import ConfigError, InputError
from ..text.glossary import Glossary
from .constraints import ConstraintBuilder
from .segments import Segment, Segmenter
from .split_texts import SplitTexts
from .texts import checked_prefixes
from .translation import Translation

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
            bundle.source_tokenizer, longest_source=min(longest, bundle.longest_source or longest), max_length=longest
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
        normalized = [self._normalize(text.removeprefix(BYTE_ORDER_MARK)) for text in texts]
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
        try:
            segments = self._segmenter.split(remaining, prefix_ids, first_line, constraints)
        except InputError:
            if on_refused is None:
                raise
            segments = self._segmenter.split_accepted(remaining, prefix_ids, first_line, constraints, on_refused)
        doubtful = recased.keys() | {number for number in ready if copies.is_contradicted(normalized[number])}
        as_is = [text if number in doubtful else "" for number, text in enumerate(normalized)]
        segments += self._segments_as_is(as_is, prefix_ids, constraints)
        segments = [segment.cancelled_by(is_cancelled) for segment in segments]
        return SplitTexts(texts, ready, segments, frozenset(recased))

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
        segments = self._segmenter.split_accepted(texts, prefix_ids, 1, constraints, lambda _: None)
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
