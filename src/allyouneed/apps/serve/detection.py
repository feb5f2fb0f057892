"""The language of a text, among the languages that the models can read (py3langid: naive Bayes over byte n-grams)."""

import re
import threading
import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .language_codes import base_language, find_code

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_MAX_CHARACTERS = 4_000  # of a text that are read; more change nothing
_NO_WORDS = re.compile(r"[\W\d_]*")


class Detection(NamedTuple):
    """A language and how sure it is: 0 to 100, of all languages that can be translated."""

    language: str
    confidence: float


class Detector:
    """Tells which of some languages a text is in. Any thread may use it; the first use loads the model (5 MB)."""

    def __init__(self, languages: Collection[str]) -> None:
        self.languages = tuple(languages)
        self._lock = threading.Lock()
        self._identifier: LanguageIdentifier | None = None
        self._codes: dict[str, str] = {}

    def detect(self, text: str) -> list[Detection]:
        """The languages of a text, the most likely first; none for a text without words, such as emoji or numbers."""
        if _NO_WORDS.fullmatch(text):
            return []
        if len(self.languages) == 1:
            return [Detection(self.languages[0], 100.0)]
        identifier = self._loaded()
        if not self._codes:
            return []
        ranked = identifier.rank(text[:_MAX_CHARACTERS].lower())
        codes = {label: self._by_script(text, code) for label, code in self._codes.items()}
        return [Detection(codes[label], round(100 * share, 1)) for label, share in ranked]

    def _loaded(self) -> "LanguageIdentifier":
        with self._lock:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier  # slow to import, and may not be needed

                identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
                labels = identifier.labels
                for code in self.languages:
                    label = base_language(code)
                    label = {"nb": "no", "fil": "tl", "iw": "he"}.get(label, label)
                    if label in labels:
                        self._codes.setdefault(label, code)
                if self._codes:
                    identifier.set_languages(list(self._codes))
                self._identifier = identifier
            return self._identifier

    def _by_script(self, text: str, code: str) -> str:
        """Simplified or traditional Chinese, which the identifier does not tell apart, by the characters."""
        if base_language(code) != "zh":
            return code
        simplified, traditional = (len(text.encode(codec, "ignore")) for codec in ("gb2312", "big5"))
        script = "zh-Hans" if simplified >= traditional else "zh-Hant"
        return find_code(script, self.languages) or code


def is_untranslatable(texts: Sequence[str]) -> bool:
    """Whether every text has only emoji, symbols, blanks and their modifiers, so that there is nothing to translate."""
    return all(
        unicodedata.category(letter) in _SYMBOLS or letter in "\u200d\u20e3" for text in texts for letter in text
    )


_SYMBOLS = {"So", "Sk", "Zs", "Mn", "Me", "Cc", "Cn"}  # general categories of Unicode
