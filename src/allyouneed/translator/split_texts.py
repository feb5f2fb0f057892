"""`SplitTexts`: texts as the segments that are translated, and their translations put together again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..text.letter_case import to_capitals
from .segments import Segment
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
            else _checked(join_translations(text, by_text[number]), parts[number])
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
                join_translations(self.texts[number], [one for _, one in some if one]), [s for s, _ in some]
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
