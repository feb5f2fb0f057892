"""Models that are quick and easy to check: what becomes of a text is a function of it."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from allyouneed.errors import InputError
from allyouneed.translator import Alignment, Translation


@dataclass
class FakeTranslator:
    """Changes each word, and with `reverse` their order, and aligns it as it did. Refuses texts with the sign ☠."""

    change: Callable[[str], str] = lambda word: word
    reverse: bool = False
    log_probability: float = 0.0
    texts: list[str] = field(default_factory=list)
    languages: tuple[str, str] = ("", "")
    checks_codes: bool = True

    def translations(
        self,
        texts: Iterable[str],
        *,
        align: str | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> Iterator[Translation]:
        for line, text in enumerate(texts, start=1):
            self.texts.append(text)
            on_progress(1)
            if "☠" in text:
                error = InputError("'☠' is not in the vocabulary", line=line)
                if on_refused is None:
                    raise error
                on_refused(error)
                yield Translation(text, "")
                continue
            words = text.split()
            changed = re.sub(r"\S+", lambda word: self.change(word.group()), text)
            if self.reverse:
                changed = " ".join(changed.split()[::-1])
            last = len(words) - 1
            links = tuple((i, last - i if self.reverse else i) for i in range(len(words)))
            alignment = Alignment(tuple(words), tuple(changed.split()), links) if align else None
            yield Translation(text, changed, self.log_probability, 1, alignment=alignment)


IDENTITY = FakeTranslator()
