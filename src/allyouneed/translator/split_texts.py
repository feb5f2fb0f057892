"""`SplitTexts`: texts as the segments that are translated, and their translations put together again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from .segments import Segment
from .translation import Translation, join_translations


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Some texts, the translations of those that need no decoding, and the segments of the others."""

    texts: Sequence[str]
    ready: dict[int, Translation]  # by the number of the text, counted from 0
    segments: list[Segment]

    def join(
        self,
        translations: Sequence[Translation | None],
        refuse: Callable[[Segment], InputError],
        on_refused: Callable[[InputError], None] | None = None,
    ) -> list[Translation]:
        """The translation of each text, from those of the segments; None is a segment without one.

        Raises the error that `refuse` makes of such a segment, or calls `on_refused` with it, and the text stays empty.
        """
        by_text: list[list[Translation]] = [[] for _ in self.texts]
        refused: dict[int, InputError] = {}
        for segment, translation in zip(self.segments, translations, strict=True):
            if translation is not None:
                by_text[segment.number].append(translation)
            else:
                refused.setdefault(segment.number, refuse(segment))
        for number, error in refused.items():
            if on_refused is None:
                raise error
            on_refused(error)
            by_text[number] = []
        return [
            replace(self.ready[number], source=text)
            if number in self.ready
            else join_translations(text, by_text[number])
            for number, text in enumerate(self.texts)
        ]
