"""What a request asks of a translation besides the text."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """The options of a request. Texts of one model share batches even if their prefixes and glossaries differ."""

    alternatives: int = 0
    align: Literal["words", "tokens"] | None = None
    glossary: tuple[tuple[str, str], ...] = ()  # pairs of a term and its translation
    prefix: str | tuple[str, ...] = ""  # of every text, or of each


PLAIN = TranslationOptions()
