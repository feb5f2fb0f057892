"""Split texts into sentences and segments, and join the translations. All translation functions use these steps."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..errors import InputError
from ..text.sentences import CharSpan, gap_between, sentence_spans, whole_span
from .segments import Segment
from .text_splitter import SplitSentences, Terms, TextSplitter, length_refusal
from .translation import Translation, join_sentences


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Texts, their sentences, and the segments of the sentences. A text that is not split has one sentence."""

    texts: Sequence[str]
    spans: Sequence[Sequence[CharSpan]]  # where the sentences of each text are; a blank text has none
    sentences: SplitSentences
    target_language: str = ""
    refused: frozenset[int] = frozenset()  # indices of texts with a sentence that cannot be read

    @property
    def segments(self) -> list[Segment]:
        """The segments to translate."""
        return self.sentences.segments

    def gaps(self, number: int) -> list[str]:
        """Return the blanks around the translated sentences of a text: before, between and after them."""
        text = self.texts[number]
        spans = self.spans[number]
        if not spans:
            return [text]
        between = [gap_between(text[end:start], self.target_language) for (_, end), (start, _) in pairwise(spans)]
        return [text[: spans[0][0]], *between, text[spans[-1][1] :]]

    def counting_texts(self, on_progress: Callable[[int], None]) -> Callable[[Sequence[int]], None]:
        """Return a function to call with the indices of translated segments; it reports how many texts are finished.

        `on_progress` receives the number of texts finished by each call; at first, the number of texts without
        segments.
        """
        number_of = numbers_of_texts(self.spans)
        left = Counter(number_of[segment.number] for segment in self.segments)
        if ready := len(self.texts) - len(left):
            on_progress(ready)

        def count(translated: Sequence[int]) -> None:
            numbers = [number_of[self.segments[i].number] for i in translated]
            left.subtract(numbers)
            if finished := sum(left[number] == 0 for number in set(numbers)):
                on_progress(finished)

        return count

    def join(
        self,
        translations: Sequence[Translation | None],
        refuse: Callable[[Segment, int], InputError],
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Translation]:
        """Join the translations of the segments into one for each text; None means a segment without a translation.

        If the text was cancelled, its translation is empty and flagged `cancelled`. Otherwise `refuse` makes an error
        from the segment and the index of its text. The error is raised or, if `on_refused` is given, passed to it once
        for each text, whose translation is then empty.
        """
        number_of = numbers_of_texts(self.spans)
        refused = set(self.refused)

        def note(segment: Segment) -> None:
            number = number_of[segment.number]
            error = refuse(segment, number)
            if on_refused is None:
                raise error
            if number not in refused:
                refused.add(number)
                on_refused(error)

        parts: list[list[Translation]] = [[] for _ in self.texts]
        for number, translation in zip(number_of, self.sentences.join(translations, note), strict=True):
            parts[number].append(translation)
        return [
            Translation(text, "") if number in refused
            else join_sentences(text, self.gaps(number), some)
            for number, (text, some) in enumerate(zip(self.texts, parts, strict=True))
        ]  # fmt: skip


def split_texts(
    splitter: TextSplitter,
    texts: Sequence[str],
    *,
    prefix: str | Sequence[str],
    glossary: Terms | None,
    first_line: int,
    on_refused: Callable[[InputError], None] | None,
    is_cancelled: Callable[[int], bool],
    split_sentences: bool,
) -> SplitTexts:
    """Split texts as `Translator.split` describes. The first sentence of a text gets the text's prefix."""
    prefixes = splitter.encode_prefixes(prefix, len(texts), first_line)
    constraints = splitter.constraints(glossary)
    refused: set[int] = set()

    def refuse(error: InputError, number: int) -> None:
        if on_refused is None:
            raise error
        if number not in refused:
            refused.add(number)
            on_refused(error)

    spans: list[tuple[CharSpan, ...]] = []
    for number, text in enumerate(texts):
        if error := length_refusal(text, first_line + number):
            refuse(error, number)
            spans.append(())
        elif split_sentences:
            terms = constraints.spans(text) if constraints else ()
            spans.append(sentence_spans(text, terms, language=splitter.languages[0]))
        else:
            spans.append(whole_span(text))
    number_of = numbers_of_texts(spans)

    def refuse_sentence(error: InputError) -> None:
        number = number_of[(error.line or 1) - 1]
        refuse(InputError(str(error), line=first_line + number), number)

    # Each sentence is translated by itself, so each needs the tag.
    tags = [splitter.language_tag(text) for text in texts]
    sentences = [
        with_tag(text[start:end], tag)
        for text, some, tag in zip(texts, spans, tags, strict=True)
        for start, end in some
    ]
    split = splitter.split(
        sentences,
        [
            ids if start == some[0][0] else []
            for some, ids in zip(spans, prefixes, strict=True)
            for start, _ in some
        ],
        constraints,
        on_refused=refuse_sentence,
        is_cancelled=lambda number: is_cancelled(number_of[number]),
    )  # fmt: skip
    left_out = (i for i, number in enumerate(number_of) if number in refused)
    return SplitTexts(texts, spans, split.without(left_out), splitter.languages[1], frozenset(refused))


def with_tag(sentence: str, tag: str) -> str:
    """Put the language tag of a text before a sentence, unless the sentence already has it."""
    return sentence if sentence.startswith(tag) else f"{tag} {sentence}"


def numbers_of_texts(spans: Sequence[Sequence[CharSpan]]) -> list[int]:
    """Return the index of each sentence's text."""
    return [number for number, some in enumerate(spans) for _ in some]
